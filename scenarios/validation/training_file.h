// Reads a file of measured training throughputs (docs/validation.md).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/scenario.h"
#include "scenarios/validation/replay_machine.h"

namespace tandem::validation {

// One model with one precision, batch and strategy, on several numbers of devices.
struct TrainingTable {
  struct Row {
    int devices = 1;
    double throughput = 0;  // of all devices, in units per second
    ReplayMachine machine{};
  };
  WorkloadSettings workload{};  // with the batch of one device
  std::string strategy{};
  int parameter_servers = 0;  // on machines of their own, beside one machine for each worker
  std::string unit{};
  std::string lacks{};  // why it cannot be replayed, in the file's words; empty: it can
  std::vector<Row> rows{};
};

// Throws InputError with every problem. `file` names it, and a model that it names lies beside it.
std::vector<TrainingTable> parse_training(std::string_view text, const std::string& file);

// Whether the text is such a file rather than one of collectives.
bool is_training_file(std::string_view text);

}  // namespace tandem::validation
