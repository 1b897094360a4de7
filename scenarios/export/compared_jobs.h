// What of a scenario is not the same in the one that its written job becomes when it is read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/scenario/scenario.h"

namespace tandem {

struct JobDifference {
  std::string key;        // of a scenario: "strategy.tensor"
  std::string given, is;  // its value in the one scenario, and in the other one
  bool is_layout = true;  // which device has which part of the model, what it keeps, and its types; else only kernels,
                          // exchanges and the host
};

// Compares what decides the time of a step, apart from the machines. Keys that mean nothing for a job are equal. Both
// scenarios train a table of layers by a strategy that divides the model.
std::vector<JobDifference> job_differences(const Scenario& given, const Scenario& read);

// Adds the differences between two tables of layers. Neighbours that read the same input count as one product, as
// programs have them. `tensor`: devices for which a vocabulary may be filled up.
void add_model_differences(const Model& given, const Model& read, std::int64_t tensor, std::vector<JobDifference>& all);

}  // namespace tandem
