#include "tests/benchmarks/benchmark_program.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <stdexcept>

namespace tandem {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string in_quotes(const std::string& word) {
  return "'" + std::regex_replace(word, std::regex("'"), "'\\''") + "'";
}

// Returns a regular expression that matches only this name, as one word of the shell.
std::string filter_of(const std::string& benchmark) {
  return in_quotes("--benchmark_filter=^" +
                   std::regex_replace(benchmark, std::regex(R"([.+*?()\[\]{}|^$\\])"), R"(\$&)") + "$");
}

std::vector<LeftOut> read_left_out(const fs::path& file, const std::string& set) {
  std::ifstream text(file);
  if (!text) throw std::runtime_error(fmt::format("cannot read {}", file.string()));
  std::vector<LeftOut> all;
  for (const json& one : json::parse(text).value(set, json::array()))
    all.push_back({one.at("benchmarks").get<std::string>(), one.at("reason").get<std::string>()});
  return all;
}

double nanoseconds(const json& run, const char* time) {
  const std::string unit = run.at("time_unit");
  const double scale = unit == "ns" ? 1 : unit == "us" ? 1e3 : unit == "ms" ? 1e6 : 1e9;
  return run.at(time).get<double>() * scale;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

BenchmarkProgram::BenchmarkProgram(std::string program, const std::string& stored)
    : program_(std::move(program)), set_(fs::path(stored).stem().string()) {
  const fs::path file = fs::path(stored).parent_path() / "left_out.json";
  std::istringstream names(output_of("--benchmark_list_tests"));
  for (std::string name; std::getline(names, name);) benchmarks_.push_back(name);
  for (const auto& [pattern, reason] : read_left_out(file, set_)) {
    const std::regex expression(pattern);
    const auto rest = std::stable_partition(benchmarks_.begin(), benchmarks_.end(), [&](const std::string& name) {
      return !std::regex_match(name, expression);
    });
    if (rest == benchmarks_.end())
      throw std::runtime_error(fmt::format("{}: the pattern '{}' of '{}' matches no other benchmark of {}",
                                           file.string(), pattern, set_, program_));
    for (auto name = rest; name != benchmarks_.end(); ++name) left_out_[*name] = reason;
    benchmarks_.erase(rest, benchmarks_.end());
  }
}

std::string BenchmarkProgram::output_of(const std::string& arguments) const {
  const fs::path errors = fs::temp_directory_path() / fmt::format("tandem-benchmark-errors.{}", getpid());
  const std::string command = fmt::format("{} {} 2>{}", in_quotes(program_), arguments, in_quotes(errors.string()));
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot start " + command);
  std::string output;
  std::array<char, 4096> part{};
  while (const std::size_t size = std::fread(part.data(), 1, part.size(), pipe)) output.append(part.data(), size);
  const int status = pclose(pipe);
  std::stringstream error;
  error << std::ifstream(errors).rdbuf();
  fs::remove(errors);
  if (status != 0)
    throw std::runtime_error(fmt::format("{} {} ended with status {}: {}", program_, arguments, status, error.str()));
  return output;
}

json BenchmarkProgram::run(const std::string& benchmark, const char* length) {
  const json document =
      json::parse(output_of(fmt::format("{} --benchmark_format=json {}", filter_of(benchmark), length)));
  build_ = document.at("context").value("build", "");
  if (document.at("benchmarks").size() != 1)
    throw std::runtime_error(fmt::format("{} ran {} times instead of once", benchmark, document["benchmarks"].size()));
  const json& run = document["benchmarks"][0];
  if (run.value("error_occurred", false))
    throw std::runtime_error(fmt::format("{} failed: {}", benchmark, run.value("error_message", "")));
  return run;
}

BenchmarkRun BenchmarkProgram::run_once(const std::string& benchmark) {
  const json one = run(benchmark, TANDEM_BENCHMARK_ONE_ITERATION);
  BenchmarkRun result{.cpu_ns = nanoseconds(one, "cpu_time"), .real_ns = nanoseconds(one, "real_time")};
  for (const auto& [name, value] : one.items())
    if (name.starts_with("exact.")) result.exact[name] = value;
  return result;
}

BenchmarkRun BenchmarkProgram::measure(const std::string& benchmark) {
  std::vector<double> cpu_ns, real_ns;
  for (int launch = 0; launch < 3; ++launch) {  // not repetitions, whose aggregates may be NaN, which is no JSON
    const json one = run(benchmark, TANDEM_BENCHMARK_TENTH_OF_A_SECOND);
    cpu_ns.push_back(nanoseconds(one, "cpu_time"));
    real_ns.push_back(nanoseconds(one, "real_time"));
  }
  return {.cpu_ns = median(cpu_ns), .real_ns = median(real_ns)};
}

}  // namespace tandem
