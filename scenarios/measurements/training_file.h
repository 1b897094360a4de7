// Reads a file of measured training throughputs (docs/validation.md).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/validation/validation.h"
#include "scenarios/measurements/replay_machine.h"
#include "scenarios/scenario/scenario.h"

namespace tandem::validation {

// One model with one precision, batch and strategy, on several numbers of devices; or rows that state their own.
struct TrainingTable {
  struct Row {
    int devices = 1;
    double throughput = 0;  // of all devices, in units per second
    std::optional<PublishedPeak> peak{};
    ReplayMachine machine{};
    std::optional<WorkloadSettings> workload{};  // instead of the table's, with the batch of all devices
    std::optional<StrategySettings> strategy{};  // instead of the table's
    std::string name{};                          // of the run, for tables; may be empty
    FilePlace place{};
  };
  WorkloadSettings workload{};  // with the batch of one device
  std::string source{};         // the title of the file's source; empty: the file has none
  std::string strategy{};
  int parameter_servers = 0;   // on machines of their own, beside one machine for each worker
  int devices_per_worker = 1;  // beside parameter servers; fewer devices are one worker, with its variables
  VariableUpdates updates = VariableUpdates::asynchronous;
  std::string unit{};
  std::string lacks{};  // why it cannot be replayed, in the file's words; empty: it can
  std::vector<Row> rows{};
};

// Parses a file. Models that it names are in the folder of `file`. Throws InputError with every problem.
std::vector<TrainingTable> parse_training(std::string_view text, const std::string& file);

// Returns the row as a scenario on its machine, without parameter servers and steps.
Scenario scenario_of(const TrainingTable& table, const TrainingTable::Row& row);
std::string model_of(const WorkloadSettings& workload);

// Returns whether the text is such a file rather than one of collectives.
bool is_training_file(std::string_view text);

}  // namespace tandem::validation
