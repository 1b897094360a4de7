// Estimates what running a scenario costs this machine, from its size: the devices that are simulated, the steps, and
// the ops of a step. Good enough to plan a sweep; docs/sweep.md says how far off it is.
#pragma once

#include "reports/sweep/sweep_table.h"
#include "scenarios/scenario/scenario.h"

namespace tandem {

// Returns nothing for a scenario that the devices' memory refuses, which costs next to nothing.
std::optional<PointEstimate> estimate_of(const Scenario& scenario);

}  // namespace tandem
