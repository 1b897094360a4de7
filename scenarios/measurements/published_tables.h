// Finds the table with which a run of `tandem collectives` is compared, and the machine that it models.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/measurements/measurement_file.h"
#include "topologies/readers/import.h"
#include "topologies/topology.h"

namespace tandem {

// Selects a table of a file. Fields that are empty or 0 fit any table.
struct WantedTable {
  std::string operation{};
  std::string dtype{};
  int devices_of_machine = 0;
  int machines = 0;
};
// Reads output of nccl-tests (text, JSON), of `tandem collectives`, or a file of measurements (docs/validation.md).
// Returns the only table that fits. Throws InputError where none or several do. Its machine is that of a file of
// measurements, if `machines` says so and the file names it.
validation::MeasuredTable published_table(const std::string& file, const WantedTable& wanted,
                                          validation::Machines machines);

// Returns `workers` machines, or one if that is empty, which a name of the catalog or a file describes. A file of a
// cluster is taken as it is. Throws InputError.
std::shared_ptr<const Topology> machine_of(const std::string& name_or_file, std::optional<int> workers,
                                           const ImportOptions& options = {});

}  // namespace tandem
