// Holds the exact counters of benchmarks (exact_counters.h) to stored values, and keeps a history of their times.
//
//   exact_counts check STORED PROGRAM
//     runs every benchmark of PROGRAM once and compares its exact counters with those in STORED; exit code 1 if any
//     differ, or if a benchmark is missing on either side
//   exact_counts update STORED PROGRAM
//     stores them
//   exact_counts history FILE SOURCES STORED PROGRAM...
//     measures the benchmarks of each PROGRAM and appends a line to FILE: date, commit of SOURCES, processor, times,
//     exact counters
//   exact_counts table FILE
//     prints the last lines of such a file, a row for each benchmark
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <thread>

#include "tests/benchmarks/benchmark_program.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

void write(const std::string& file, const std::string& text, std::ios::openmode mode) {
  std::ofstream out(file, mode);
  out << text << '\n' << std::flush;
  if (!out) throw std::runtime_error(file + " cannot be written");
}

constexpr const char* kAllocations = "exact.allocations";
constexpr std::size_t kShownRuns = 5;
constexpr int kSkipped = 77;

Json number(double value) {
  constexpr double kWholeBelow = 9007199254740992;  // 2^53
  if (std::nearbyint(value) == value && std::abs(value) < kWholeBelow) return static_cast<std::int64_t>(value);
  return value;
}

Json json_of(const std::map<std::string, double>& counters) {
  Json json = Json::object();
  for (const auto& [name, value] : counters) json[name] = number(value);
  return json;
}

Json read(const std::string& file) {
  std::ifstream text(file);
  if (!text) throw std::runtime_error(fmt::format("cannot read {}", file));
  return Json::parse(text);
}

// One benchmark's counters against those stored. `update` is the command that stores what is found.
class Comparison {
 public:
  Comparison(std::string file, std::string update)
      : file_(std::move(file)), update_(std::move(update)), stored_(read(file_)) {}

  void compare(const std::string& benchmark, const std::map<std::string, double>& found, const std::string& build) {
    if (found.empty()) {
      add("{}: sets no exact counter; tests/benchmarks/exact_counters.h has functions that do", benchmark);
      return;
    }
    const Json& all = stored_.at("benchmarks");
    if (!all.contains(benchmark)) {
      add("{}: {} has no such benchmark; if it is new: {}", benchmark, file_, update_);
      return;
    }
    const bool same_build = stored_.at("build") == build;
    const Json& counters = all.at(benchmark);
    std::set<std::string> names;
    for (const auto& [name, value] : found) names.insert(name);
    for (const auto& [name, value] : counters.items()) names.insert(name);
    for (const std::string& name : names) {
      if (name == kAllocations && !same_build) continue;
      const auto now = found.find(name);
      const std::string is = now == found.end() ? "missing" : number(now->second).dump();
      const std::string was = counters.contains(name) ? counters.at(name).dump() : "nothing";
      if (now != found.end() && counters.contains(name) && counters.at(name).get<double>() == now->second) continue;
      add("{}: counter {} is {}, stored is {}; if this is meant: {}", benchmark, name, is, was, update_);
    }
    if (!same_build) other_build_ = build;
  }

  // `program` has no other benchmarks than those of `names`.
  void end(const std::string& program, const std::set<std::string>& names) {
    for (const auto& [name, counters] : stored_.at("benchmarks").items()) {
      if (names.count(name) > 0) continue;
      add("{}: stored in {}, but {} does not run it; if it was removed or left out: {}", name, file_, program, update_);
    }
    if (other_build_.empty()) return;
    fmt::print("allocations are not compared: those stored are of '{}', the program is of '{}'\n",
               stored_.at("build").get<std::string>(), other_build_);
  }

  std::size_t differences() const { return differences_; }

 private:
  template <typename... Args>
  void add(fmt::format_string<Args...> text, Args&&... args) {
    ++differences_;
    fmt::print("{}\n", fmt::format(text, std::forward<Args>(args)...));
  }

  std::string file_, update_;
  Json stored_;
  std::string other_build_;
  std::size_t differences_ = 0;
};

void print_left_out(const BenchmarkProgram& program) {
  for (const auto& [name, reason] : program.left_out()) fmt::print("left out: {}: {}\n", name, reason);
}

int check(const std::string& stored, const std::string& path) {
  if (constexpr std::string_view sanitizer = TANDEM_BENCHMARK_SANITIZER; !sanitizer.empty()) {
    fmt::print("skipped: the {} sanitizer changes how often a program allocates\n", sanitizer);
    return kSkipped;
  }
  BenchmarkProgram program(path, stored);
  Comparison comparison(stored, TANDEM_BENCHMARK_UPDATE);
  std::set<std::string> names;
  for (const std::string& name : program.benchmarks()) {
    names.insert(name);
    comparison.compare(name, program.run_once(name).exact, program.build());
  }
  comparison.end(path, names);
  print_left_out(program);
  fmt::print("{}: {} benchmarks, {} left out, {} differences\n", program.set(), names.size(), program.left_out().size(),
             comparison.differences());
  return comparison.differences() == 0 ? 0 : 1;
}

int update(const std::string& stored, const std::string& path) {
  BenchmarkProgram program(path, stored);
  Json all = Json::object();
  for (const std::string& name : program.benchmarks()) all[name] = json_of(program.run_once(name).exact);
  const Json document{{"build", program.build()}, {"benchmarks", all}};
  write(stored, document.dump(1), std::ios::out);
  fmt::print("stored {} benchmarks in {}\n", all.size(), stored);
  return 0;
}

std::string processor() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return line.substr(std::min(line.size(), line.find(':') + 2));
  return "unknown";
}

// With "-dirty" where sources differ from the commit; "unknown" outside a repository.
std::string commit_of(const std::string& sources) {
  const std::string command = fmt::format("git -C '{}' describe --always --dirty --abbrev=12 2>/dev/null", sources);
  std::string commit(64, '\0');
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "unknown";
  commit.resize(std::fread(commit.data(), 1, commit.size(), pipe));
  pclose(pipe);
  commit.resize(std::min(commit.size(), commit.find('\n')));
  return commit.empty() ? "unknown" : commit;
}

int append_history(const std::string& file, const std::string& sources, const std::vector<std::string>& pairs) {
  Json line{{"date", fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)))},
            {"commit", commit_of(sources)},
            {"processor", processor()},
            {"processors", std::thread::hardware_concurrency()}};
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
    BenchmarkProgram program(pairs[i + 1], pairs[i]);
    Json& all = line["benchmarks"][program.set()];
    for (const std::string& name : program.benchmarks()) {
      Json exact = json_of(program.run_once(name).exact);
      const BenchmarkRun times = program.measure(name);
      // Three digits after the point are more than repeat.
      const auto rounded = [](double ns) { return number(std::round(ns * 1e3) / 1e3); };
      all[name] = {{"cpu_ns", rounded(times.cpu_ns)}, {"real_ns", rounded(times.real_ns)}, {"exact", std::move(exact)}};
    }
    line["build"] = program.build();
  }
  write(file, line.dump(), std::ios::app);
  fmt::print("appended a line to {}\n", file);
  return 0;
}

std::string time_text(double ns) {
  if (ns < 1e3) return fmt::format("{:.1f} ns", ns);
  if (ns < 1e6) return fmt::format("{:.1f} us", ns / 1e3);
  if (ns < 1e9) return fmt::format("{:.1f} ms", ns / 1e6);
  return fmt::format("{:.2f} s", ns / 1e9);
}

// CPU times by benchmark; "*" where exact counters differ from those of the run before it.
int table(const std::string& file) {
  std::ifstream text(file);
  if (!text) throw std::runtime_error(fmt::format("cannot read {}", file));
  std::vector<Json> runs;
  for (std::string line; std::getline(text, line);) runs.push_back(Json::parse(line));
  if (runs.empty()) throw std::runtime_error(fmt::format("{} has no line", file));
  runs.erase(runs.begin(), runs.end() - static_cast<std::ptrdiff_t>(std::min(runs.size(), kShownRuns)));
  fmt::print("{:<54}", "CPU time of an iteration");
  for (const Json& run : runs) fmt::print("  {:>12}", run.at("date").get<std::string>());
  fmt::print("\n{:<54}", "");
  for (const Json& run : runs) fmt::print("  {:>12.12}", run.at("commit").get<std::string>());
  fmt::print("\n");
  for (const auto& [set, benchmarks] : runs.back().at("benchmarks").items()) {
    for (const auto& [name, newest] : benchmarks.items()) {
      fmt::print("{:<54}", set + " " + name);
      const Json* before = nullptr;
      for (const Json& run : runs) {
        const Json& same = run.at("benchmarks").value(set, Json::object());
        if (!same.contains(name)) {
          fmt::print("  {:>12}", "-");
          continue;
        }
        const Json& one = run.at("benchmarks").at(set).at(name);
        const bool changed = before != nullptr && before->at("exact") != one.at("exact");
        fmt::print("  {:>12}", time_text(one.at("cpu_ns").get<double>()) + (changed ? "*" : ""));
        before = &one;
      }
      fmt::print("\n");
    }
  }
  fmt::print("*: exact counters changed\n");
  return 0;
}

int run(const std::vector<std::string>& arguments) {
  const std::string command = arguments.empty() ? "" : arguments[0];
  const std::size_t count = arguments.size();
  if (command == "check" && count == 3) return check(arguments[1], arguments[2]);
  if (command == "update" && count == 3) return update(arguments[1], arguments[2]);
  if (command == "table" && count == 2) return table(arguments[1]);
  if (command == "history" && count >= 5 && count % 2 == 1)
    return append_history(arguments[1], arguments[2], {arguments.begin() + 3, arguments.end()});
  fmt::print(stderr,
             "exact_counts check|update STORED PROGRAM, history FILE SOURCES STORED PROGRAM..., "
             "or table FILE\n");
  return 2;
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  try {
    return tandem::run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
