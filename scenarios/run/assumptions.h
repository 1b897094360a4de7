// Finds the assumed figures that move a simulated step most.
#pragma once

#include <cstddef>
#include <vector>

#include "reports/errors/assumption.h"
#include "scenarios/run/run_result.h"
#include "scenarios/scenario/scenario.h"

namespace tandem {

inline constexpr std::size_t kShownAssumptions = 3;

// Simulates the scenario, of which `result` is a simulation, with other values of each figure of its topology that
// decided a time and may be another (assumed_figures()), and returns those that change the step most, at most
// kShownAssumptions of them and none that changes it by less than 0.1 %. Takes two quick simulations for each figure.
// Empty for a result that is no simulation.
//
// Throws what run_scenario() throws.
std::vector<Assumption> assumptions_of(const Scenario& scenario, const RunResult& result);

}  // namespace tandem
