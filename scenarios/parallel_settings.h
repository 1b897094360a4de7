// The strategies that divide the model itself: what a scenario says of them, and what they cannot do.
#pragma once

#include <optional>
#include <string>

#include "scenarios/scenario.h"

namespace tandem {

struct LayerDivision;
struct LinearStack;
struct ParallelOptions;

// The mesh over all of the scenario's devices, whose strategy divides the model.
ParallelOptions parallel_options(const Scenario& scenario);
// The scenario's model, without first weights.
LinearStack linear_stack(const MlpSettings& settings);
// How the mesh divides the layers of a table.
LayerDivision layer_division(const LayersSettings& layers, const ParallelOptions& options);
// How many devices compute one replica of the data; 1 for strategies that replicate the whole model.
int devices_of_one_replica(const Scenario& scenario);
// The job of one of so many replicas, with its share of the batch, on as few workers as have its devices.
Scenario one_replica_of(const Scenario& scenario, int replicas);

// Why a scenario whose strategy divides the model, or that plays a trace, cannot run, and which of its values is to
// blame. Nothing for others.
struct ParallelProblem {
  std::string path;
  std::string message;
};
std::optional<ParallelProblem> parallel_problem(const Scenario& scenario);

}  // namespace tandem
