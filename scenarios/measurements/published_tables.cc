#include "scenarios/measurements/published_tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "reports/nccl_tests/nccl_tests_reader.h"
#include "scenarios/scenario/named_files.h"
#include "topologies/generators/cluster.h"
#include "topologies/readers/catalog.h"
#include "topologies/readers/topology_reader.h"

namespace tandem {
namespace {

std::string text_of(const CollectiveTable& table) {
  return fmt::format("{} of {} on {} devices (line {})", table.operation, table.dtype, table.devices, table.line);
}

bool fits(const CollectiveTable& table, const WantedTable& wanted) {
  const int machines = wanted.machines > 0 ? wanted.machines : std::max(1, table.nodes);
  return (wanted.operation.empty() || table.operation == wanted.operation) &&
         (wanted.dtype.empty() || table.dtype == wanted.dtype) &&
         (wanted.devices_of_machine == 0 || table.devices == wanted.devices_of_machine * machines);
}

[[noreturn]] void refuse_table(const std::string& file, int line, std::string message) {
  throw InputError({{.file = file, .line = std::max(1, line), .path = "", .message = std::move(message)}});
}

[[noreturn]] void refuse_machines(const std::string& name_or_file, std::string message) {
  const FilePlace place = is_file_name(name_or_file) ? kBeginning : FilePlace{};
  throw InputError({problem_at(name_or_file, place, std::move(message))});
}

std::vector<validation::MeasuredTable> read_tables(const std::string& file, const CollectiveTable& stated,
                                                   validation::Machines machines) {
  const std::string text = read_input_file(file);
  if (validation::is_measurement_file(text)) return validation::parse_measurements(text, file, machines).tables;
  std::vector<validation::MeasuredTable> tables;
  for (CollectiveTable& table : read_nccl_tests(text, file, stated)) tables.push_back({.table = std::move(table)});
  return tables;
}

}  // namespace

validation::MeasuredTable published_table(const std::string& file, const WantedTable& wanted,
                                          validation::Machines machines) {
  CollectiveTable stated;
  stated.devices = wanted.devices_of_machine * std::max(1, wanted.machines);
  const std::vector<validation::MeasuredTable> tables = read_tables(file, stated, machines);
  std::vector<std::string> all, fitting;
  const validation::MeasuredTable* found = nullptr;
  for (const validation::MeasuredTable& each : tables) {
    all.push_back(text_of(each.table));
    if (!fits(each.table, wanted)) continue;
    fitting.push_back(text_of(each.table));
    found = &each;
  }
  if (found == nullptr) refuse_table(file, 1, fmt::format("holds no table that fits, only {}", fmt::join(all, ", ")));
  if (fitting.size() > 1) {
    refuse_table(
        file, found->table.line,
        fmt::format("holds several tables that fit: {}; name the collective, -d or -g", fmt::join(fitting, ", ")));
  }
  if (!kind_of_operation(found->table.operation)) {
    refuse_table(file, found->table.line,
                 fmt::format("holds times of {}, must be one of {}", found->table.operation,
                             fmt::join(known_operations(), ", ")));
  }
  return *found;
}

std::shared_ptr<const Topology> machine_of(const std::string& name_or_file, std::optional<int> workers,
                                           const ImportOptions& options) {
  Topology one =
      is_file_name(name_or_file) ? import_topology(name_or_file, options).topology : load_catalog_node(name_or_file);
  if (one.worker_count() > 1 && workers && *workers > one.worker_count()) {
    refuse_machines(name_or_file, fmt::format("has {} machines, not {}", one.worker_count(), *workers));
  }
  if (one.worker_count() > 1 || workers.value_or(1) == 1) return std::make_shared<const Topology>(std::move(one));
  try {
    return std::make_shared<const Topology>(
        make_cluster(one, *workers, {}, fmt::format("{} x {}", *workers, one.name())));
  } catch (const InputError&) {
    throw;
  } catch (const Error& error) {
    refuse_machines(name_or_file, error.what());
  }
}

}  // namespace tandem
