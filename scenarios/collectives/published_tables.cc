#include "scenarios/collectives/published_tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "reports/nccl_tests_reader.h"
#include "scenarios/named_files.h"
#include "scenarios/validation/measurement_file.h"
#include "topologies/generators/cluster.h"
#include "topologies/readers/catalog.h"
#include "topologies/readers/topology_reader.h"

namespace tandem {
namespace {

std::string text_of(const CollectiveTable& table) {
  return fmt::format("{} of {} on {} devices (line {})", table.operation, table.dtype, table.devices, table.line);
}

bool fits(const CollectiveTable& table, const WantedTable& wanted) {
  return (wanted.operation.empty() || table.operation == wanted.operation) &&
         (wanted.dtype.empty() || table.dtype == wanted.dtype) &&
         (wanted.devices == 0 || table.devices == wanted.devices);
}

[[noreturn]] void refuse_table(const std::string& file, std::string message) {
  throw InputError({{.file = file, .path = "", .message = std::move(message)}});
}

}  // namespace

std::vector<CollectiveTable> read_collective_tables(const std::string& file, const CollectiveTable& stated) {
  const std::string text = read_input_file(file);
  if (!validation::is_measurement_file(text)) return read_nccl_tests(text, file, stated);
  std::vector<CollectiveTable> tables;
  for (auto& measured : validation::parse_measurements(text, file, validation::Machines::ignore).tables) {
    tables.push_back(std::move(measured.table));
  }
  return tables;
}

CollectiveTable published_table(const std::string& file, const WantedTable& wanted) {
  CollectiveTable stated;
  stated.devices = wanted.devices;
  std::vector<CollectiveTable> tables = read_collective_tables(file, stated);
  std::vector<std::string> all, fitting;
  const CollectiveTable* found = nullptr;
  for (const CollectiveTable& table : tables) {
    all.push_back(text_of(table));
    if (!fits(table, wanted)) continue;
    fitting.push_back(text_of(table));
    found = &table;
  }
  if (fitting.size() > 1) {
    refuse_table(file, fmt::format("holds several tables that fit: {}; name the collective, -d or -g",
                                   fmt::join(fitting, ", ")));
  }
  if (found == nullptr) refuse_table(file, fmt::format("holds no table that fits, only {}", fmt::join(all, ", ")));
  if (!kind_of_operation(found->operation)) {
    refuse_table(file, fmt::format("holds times of {}, must be one of {}", found->operation,
                                   fmt::join(known_operations(), ", ")));
  }
  return *found;
}

std::shared_ptr<const Topology> machine_of(const std::string& name_or_file, std::optional<int> workers,
                                           const ImportOptions& options) {
  Topology one =
      is_file_name(name_or_file) ? import_topology(name_or_file, options).topology : load_catalog_node(name_or_file);
  if (one.worker_count() > 1 && workers && *workers > one.worker_count()) {
    refuse_table(name_or_file, fmt::format("has {} machines, not {}", one.worker_count(), *workers));
  }
  if (one.worker_count() > 1 || workers.value_or(1) == 1) return std::make_shared<const Topology>(std::move(one));
  try {
    return std::make_shared<const Topology>(
        make_cluster(one, *workers, {}, fmt::format("{} x {}", *workers, one.name())));
  } catch (const InputError&) {
    throw;
  } catch (const Error& error) {
    refuse_table(name_or_file, error.what());
  }
}

}  // namespace tandem
