// A scenario's settings for strategies that divide the model, and why such a strategy may be unable to run it.
#pragma once

#include <optional>
#include <string>

#include "scenarios/scenario/scenario.h"
#include "strategies/parallel/layout/division_problem.h"

namespace tandem {

struct ParallelOptions;

// Returns the mesh over all devices of a scenario whose strategy divides the model.
ParallelOptions parallel_options(const Scenario& scenario);
// Returns how many devices compute one replica of the data; 1 for strategies that replicate the whole model.
int devices_of_one_replica(const Scenario& scenario);
// Returns the scenario of one of its `replicas` replicas, with that replica's share of the batch, on as few workers as
// have enough devices for it.
Scenario one_replica_of(const Scenario& scenario, int replicas);

// Returns why a scenario whose strategy divides the model, or that plays a trace, cannot run.
std::optional<DivisionProblem> parallel_problem(const Scenario& scenario);

}  // namespace tandem
