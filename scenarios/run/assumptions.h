// Finds the assumed figures that move a simulated step most.
#pragma once

#include <cstddef>
#include <vector>

#include "reports/errors/assumption.h"
#include "scenarios/estimates/assumed_figures.h"
#include "scenarios/run/run_result.h"
#include "scenarios/scenario/scenario.h"

namespace tandem {

inline constexpr std::size_t kShownAssumptions = 3;

// Whether assumptions_of() takes little time beside what the run has taken: for a simulation with few records of which
// nothing goes wrong.
bool has_cheap_assumptions(const Scenario& scenario, const RunResult& result);

// Simulates the scenario, of which `result` is a simulation, with other values of each figure of its topology that
// decided a time and may be another (assumed_figures() of these ranges), and returns those that change the step most,
// at most kShownAssumptions of them and none that changes it by less than 0.1 %. Takes two quick simulations for each
// figure. Empty for a result that is no simulation.
//
// Throws what run_scenario() throws.
std::vector<Assumption> assumptions_of(const Scenario& scenario, const RunResult& result, FigureRanges ranges);

}  // namespace tandem
