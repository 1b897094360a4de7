#include "scenarios/validation/ledger/mlperf_results.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <sstream>

#include "reports/base/statistics.h"
#include "topologies/base/strict_yaml.h"

namespace tandem::validation {
namespace {

namespace fs = std::filesystem;
using LogEntry = nlohmann::json;

constexpr std::size_t kWarmUp = 5;

std::vector<fs::path> sorted_entries(const fs::path& folder) {
  std::error_code ignored;
  std::vector<fs::path> paths;
  for (fs::directory_iterator at(folder, ignored), end; at != end; at.increment(ignored)) paths.push_back(at->path());
  std::ranges::sort(paths);
  return paths;
}

// A number that may count or measure something, also as text; 0 for anything else.
double number_of(const LogEntry& value) {
  constexpr double kMost = 1e15;
  double number = 0;
  if (value.is_number()) number = value.get<double>();
  if (value.is_string()) {
    const std::string text = value.get<std::string>();
    std::from_chars(text.data(), text.data() + text.size(), number);
  }
  return number > 0 && number < kMost ? number : 0;
}

double number_at(const LogEntry& map, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    if (const auto found = map.find(key); map.is_object() && found != map.end()) return number_of(*found);
  }
  return 0;
}

int count_at(const LogEntry& map, const char* key) {
  constexpr double kMost = 1 << 20;
  const double number = number_at(map, {key});
  return number <= kMost ? static_cast<int>(number) : 0;
}

std::string text_at(const LogEntry& map, const char* key) {
  const auto found = map.find(key);
  return found != map.end() && found->is_string() ? found->get<std::string>() : "";
}

// The lines that a log has for programs, behind what launchers put in front of them.
std::vector<LogEntry> entries_of(std::string_view text) {
  constexpr std::string_view kMark = ":::MLLOG ";
  std::vector<LogEntry> entries;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find(kMark);
    if (at == std::string::npos) continue;
    LogEntry entry = LogEntry::parse(line.substr(at + kMark.size()), nullptr, false);
    if (entry.is_object() && entry.contains("key") && entry.contains("value")) entries.push_back(std::move(entry));
  }
  return entries;
}

LedgerRow read_system(const fs::path& file) {
  const std::string text = read_input_file(file);
  const LogEntry system = LogEntry::parse(text, nullptr, false);
  if (!system.is_object()) {
    throw InputError({{.file = file.string(), .path = "", .message = "is no JSON object that describes a system"}});
  }
  return {.accelerator = text_at(system, "accelerator_model_name"),
          .network = text_at(system, "host_networking"),
          .nodes = count_at(system, "number_of_nodes"),
          .devices_of_node = count_at(system, "accelerators_per_node"),
          .place = kBeginning};
}

// The configuration for so many nodes and accelerators, if one has their numbers in its name: config_DGXA100_64x8x...
std::optional<fs::path> configuration_of(const fs::path& benchmark, const LedgerRow& row) {
  std::error_code ignored;
  std::vector<fs::path> found;
  const std::regex form(fmt::format("config(_.*)?[^0-9]0*{}x{}[^0-9].*\\.sh", row.nodes, row.devices_of_node));
  for (fs::recursive_directory_iterator at(benchmark, ignored), end; at != end; at.increment(ignored)) {
    if (std::regex_match(at->path().filename().string(), form)) found.push_back(at->path());
  }
  std::ranges::sort(found);
  return found.empty() ? std::nullopt : std::optional(found.front());
}

std::vector<fs::path> logs_in(const fs::path& folder) {
  std::vector<fs::path> logs = sorted_entries(folder);
  std::erase_if(logs, [](const fs::path& path) { return !path.filename().string().starts_with("result_"); });
  return logs;
}

// The median of the runs of one benchmark on one system.
void read_runs(const std::vector<fs::path>& logs, LedgerRow& row) {
  std::vector<double> steps;
  for (const fs::path& log : logs) {
    const MlperfLog run = read_mlperf_log(read_input_file(log));
    if (run.batch > 0) row.batch = run.batch;
    if (run.step_s > 0) steps.push_back(run.step_s);
  }
  row.step_s = steps.empty() ? 0 : median_of(steps);
}

// Reads the results below one submitter's folder.
class Submitter {
 public:
  Submitter(fs::path folder, std::string round, std::map<std::string, std::vector<LedgerRow>>& rows)
      : folder_(std::move(folder)), round_(std::move(round)), rows_(rows) {}

  void read() {
    for (const fs::path& system : sorted_entries(folder_ / "results")) {
      for (const fs::path& benchmark : sorted_entries(system)) read_benchmark(system, benchmark);
    }
  }

 private:
  void read_benchmark(const fs::path& system, const fs::path& folder) {
    const std::vector<fs::path> logs = logs_in(folder);
    if (logs.empty()) return;
    LedgerRow row = read_system(folder_ / "systems" / (system.filename().string() + ".json"));
    row.benchmark = folder.filename().string();
    row.round = round_;
    row.submitter = folder_.filename().string();
    row.system = system.filename().string();
    row.batch = 0;
    read_runs(logs, row);
    if (const auto configuration = configuration_of(folder_ / "benchmarks" / row.benchmark, row)) {
      row.configuration = configuration->filename().string();
      row.settings = read_mlperf_settings(read_input_file(*configuration));
    }
    rows_[row.benchmark].push_back(std::move(row));
  }

  fs::path folder_;
  std::string round_;
  std::map<std::string, std::vector<LedgerRow>>& rows_;
};

// "v3.1" of ".../training_results_v3.1/..."; the last of several, empty where no folder on the way says so.
std::string round_of(const fs::path& folder) {
  static const std::regex form(R"(v[0-9]+\.[0-9]+)");
  const std::string path = folder.string();
  std::string round;
  for (std::sregex_iterator at(path.begin(), path.end(), form), end; at != end; ++at) round = at->str();
  return round;
}

}  // namespace

MlperfLog read_mlperf_log(std::string_view text) {
  MlperfLog log;
  std::vector<double> rates, times;
  for (const LogEntry& entry : entries_of(text)) {
    const LogEntry& value = entry.at("value");
    if (entry.at("key") == "global_batch_size") log.batch = static_cast<std::int64_t>(number_of(value));
    if (entry.at("key") != "tracked_stats") continue;
    if (const double rate = number_at(value, {"throughput", "imgs_sec"}); rate > 0) rates.push_back(rate);
    if (const double time = number_at(value, {"train_step_time", "step_time"}); time > 0) times.push_back(time);
  }
  // Few figures are those of whole epochs, of which the first is warm-up.
  const auto warm = [](std::vector<double>& figures) {
    const std::size_t left_out = figures.size() > kWarmUp ? kWarmUp : 1;
    figures.erase(figures.begin(), figures.begin() + static_cast<std::ptrdiff_t>(left_out));
    return median_of(figures);
  };
  if (times.size() > 1) {
    log.step_s = warm(times);
  } else if (rates.size() > 1) {
    log.step_s = static_cast<double>(log.batch) / warm(rates);
  }
  return log;
}

std::map<std::string, std::string> read_mlperf_settings(std::string_view text) {
  static const std::regex exported(R"(^\s*export\s+([A-Za-z_][A-Za-z0-9_]*)=(.*)$)");
  static const std::regex usual(R"(^\s*:\s+"?\$\{([A-Za-z_][A-Za-z0-9_]*):?=(.*)\}"?\s*$)");
  std::map<std::string, std::string> settings;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::smatch found;
    if (!std::regex_search(line, found, exported) && !std::regex_search(line, found, usual)) continue;
    std::string value = found[2].str();
    std::erase(value, '"');
    // "${NAME:-4}" is 4 where nobody says something else.
    static const std::regex otherwise(R"(^\$\{[A-Za-z_0-9]+:?[-=]([^}]*)\}(.*)$)");
    std::smatch inner;
    if (std::regex_match(value, inner, otherwise)) value = inner[1].str() + inner[2].str();
    settings[found[1].str()] = value;
  }
  return settings;
}

std::map<std::string, std::vector<LedgerRow>> read_mlperf(const fs::path& given) {
  std::error_code ignored;
  const fs::path whole = fs::weakly_canonical(given, ignored), folder = whole.empty() ? given : whole;
  std::map<std::string, std::vector<LedgerRow>> rows;
  const std::string round = round_of(folder);
  if (fs::is_directory(folder / "results", ignored)) {
    Submitter(folder, round, rows).read();
  } else {
    for (const fs::path& submitter : sorted_entries(folder)) Submitter(submitter, round, rows).read();
  }
  if (rows.empty()) {
    throw InputError(
        {{.file = given.string(),
          .path = "",
          .message =
              "holds no results of MLPerf: SUBMITTER/results/SYSTEM/BENCHMARK/result_0.txt, as in a repository of "
              "mlcommons/training_results_v4.1, or results/ of one submitter"}});
  }
  return rows;
}

}  // namespace tandem::validation
