// A scenario's settings for strategies that divide the model, and why such a strategy may be unable to run it.
#pragma once

#include <optional>
#include <string>

#include "scenarios/scenario.h"

namespace tandem {

struct LayerDivision;
struct LinearStack;
struct ParallelOptions;

// Returns the mesh over all devices of a scenario whose strategy divides the model.
ParallelOptions parallel_options(const Scenario& scenario);
// Returns the scenario's model, without first weights.
LinearStack linear_stack(const MlpSettings& settings);
// Returns how the mesh divides the layers of a table.
LayerDivision layer_division(const LayersSettings& layers, const ParallelOptions& options);
// Returns how many devices compute one replica of the data; 1 for strategies that replicate the whole model.
int devices_of_one_replica(const Scenario& scenario);
// Returns the scenario of one of its `replicas` replicas, with that replica's share of the batch, on as few workers as
// have enough devices for it.
Scenario one_replica_of(const Scenario& scenario, int replicas);

// Why a scenario whose strategy divides the model, or that plays a trace, cannot run, and which of its values is to
// blame.
struct ParallelProblem {
  std::string path;
  std::string message;
};
std::optional<ParallelProblem> parallel_problem(const Scenario& scenario);

}  // namespace tandem
