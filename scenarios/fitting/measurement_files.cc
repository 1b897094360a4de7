#include "scenarios/fitting/measurement_files.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <tuple>

#include "reports/nccl_tests/nccl_tests_reader.h"
#include "reports/run/report_json.h"
#include "reports/run/report_text.h"
#include "scenarios/measurements/measurement_file.h"
#include "topologies/base/strict_yaml.h"
#include "topologies/readers/topology_yaml.h"

namespace tandem {
namespace {

constexpr std::size_t kMostFittedTimes = 10'000;  // the time that a fit takes grows with their square

bool is_report(std::string_view text) {
  return text.find("\"scenario_hash\"") != std::string_view::npos;
}

// Looks for a key of YAML at the beginning of a line, which neither nccl-tests' output nor NCCL's log has.
bool has_key(std::string_view text, std::string_view key) {
  const std::string line = fmt::format("{}:", key);
  return text.starts_with(line) || text.find("\n" + line) != std::string_view::npos;
}

[[noreturn]] void refuse(const std::string& file, std::string message) {
  throw InputError({problem_at(file, kBeginning, std::move(message))});
}

// Tables grouped, and ordered, by what they measure.
class Tables {
 public:
  explicit Tables(std::string file) : file_(std::move(file)) {}

  void add(const std::string& operation, int devices, int nodes, std::int64_t bytes, double time_us,
           std::string algorithm = {}) {
    CollectiveTable& table = tables_[{operation, nodes, devices}];
    if (table.rows.empty()) {
      table.operation = operation;
      table.devices = devices;
      table.nodes = nodes;
      table.file = file_;
    }
    CollectiveRow row;
    row.bytes = bytes;
    row.out_of_place_us = time_us;
    row.algorithm = std::move(algorithm);
    table.rows.push_back(std::move(row));
  }

  std::vector<CollectiveTable> take() {
    std::vector<CollectiveTable> all;
    for (auto& [key, table] : tables_) all.push_back(std::move(table));
    return all;
  }

 private:
  std::string file_;
  std::map<std::tuple<std::string, int, int>, CollectiveTable> tables_;
};

// Sends and receives are not collectives, and collectives of one device move nothing.
bool counts(const std::string& operation, int devices) {
  return devices > 1 && collective_of_record(operation) != CollectiveKind::send_receive;
}

std::vector<CollectiveTable> tables_of_report(std::string_view text, const std::string& file,
                                              std::vector<std::string>& disturbances) {
  const Report report = report_from_json(text, file);
  if (report.deterministic) refuse(file, "is the report of a simulation, which measures nothing");
  if (report.is_disturbed()) disturbances.push_back(fmt::format("{}: {}", file, lost_text(*report.machine_use)));
  Tables tables(file);
  for (const CollectiveSummary& summary : report.summary.collectives) {
    if (!counts(summary.operation, summary.devices)) continue;
    const int nodes = summary.devices == report.replicas ? report.workers : 1;
    tables.add(summary.operation, summary.devices, nodes, summary.bytes, static_cast<double>(summary.time_ns) * 1e-3);
  }
  return tables.take();
}

std::vector<CollectiveTable> tables_of_topology(std::string_view text, const std::string& file,
                                                std::vector<std::string>& disturbances) {
  const Topology topology = parse_topology_yaml(text, file);
  if (!topology.facts().disturbance().empty())
    disturbances.push_back(fmt::format("{}: {}", file, topology.facts().disturbance()));
  Tables tables(file);
  for (const CollectiveSample& sample : topology.facts().collectives) {
    if (!counts(sample.operation, sample.devices)) continue;
    tables.add(sample.operation, sample.devices, sample.nodes, std::llround(sample.bytes), sample.time_s * 1e6,
               sample.algorithm);
  }
  return tables.take();
}

// Published measurements may hold tables of other collectives than Tandem's, and of machines that were not healthy.
std::vector<CollectiveTable> tables_of_publication(std::string_view text, const std::string& file,
                                                   std::vector<std::string>& disturbances) {
  const validation::MeasurementFile published =
      validation::parse_measurements(text, file, validation::Machines::ignore);
  if (!published.healthy) {
    disturbances.push_back(fmt::format("{}: the machine was not healthy, as its publisher says", file));
  }
  std::vector<CollectiveTable> tables;
  for (const validation::MeasuredTable& measured : published.tables) {
    if (kind_of_operation(measured.table.operation)) tables.push_back(measured.table);
  }
  return tables;
}

std::vector<CollectiveTable> tables_of(std::string_view text, const std::string& file,
                                       std::vector<std::string>& disturbances) {
  if (is_report(text)) return tables_of_report(text, file, disturbances);
  if (has_key(text, "schema_version")) return tables_of_topology(text, file, disturbances);
  if (validation::is_measurement_file(text)) return tables_of_publication(text, file, disturbances);
  return read_nccl_tests(text, file);
}

void read(const std::filesystem::path& path, Measurements& measurements) {
  const std::string file = path.string();
  const std::string text = read_input_file(path);
  if (has_key(text, "throughput")) {
    for (MeasuredThroughput& each : read_throughputs(path)) measurements.throughputs.push_back(std::move(each));
    return;
  }
  std::vector<CollectiveTable> tables = tables_of(text, file, measurements.disturbances);
  if (tables.empty()) refuse(file, "holds no measured collective");
  std::size_t rows = 0;
  for (const CollectiveTable& table : tables) rows += table.rows.size();
  if (rows > kMostFittedTimes) {
    refuse(file, fmt::format("has {} times of collectives; at most {} are fitted", rows, kMostFittedTimes));
  }
  for (CollectiveTable& table : tables) measurements.collectives.push_back(std::move(table));
}

}  // namespace

Measurements read_measurements(const std::vector<std::filesystem::path>& paths) {
  Measurements measurements;
  std::vector<Diagnostic> problems;
  for (const std::filesystem::path& path : paths) {
    try {
      read(path, measurements);
    } catch (const InputError& error) {
      problems.insert(problems.end(), error.diagnostics().begin(), error.diagnostics().end());
    }
  }
  if (!problems.empty()) throw InputError(std::move(problems));
  return measurements;
}

}  // namespace tandem
