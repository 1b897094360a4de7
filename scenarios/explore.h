// Runs a scenario under many seeds of its engine's scheduler, looking for an order of its tasks that it does not bear.
#pragma once

#include <cstdint>
#include <functional>

#include "reports/exploration.h"
#include "scenarios/runner.h"

namespace tandem {

// Runs it without a seed, then under `schedules` seeds from options.schedule_seed (default: 1) on, and ends at the
// first run that fails or whose values differ. options.progress is given the number of runs, after each step of each
// run; what it throws goes to the caller. The failure's command is left to the caller. `begins`, unless empty, is told
// each seed before its run.
//
// Throws InputError where the engine has no seeded schedule, and what run_scenario() throws for the run without a seed.
Exploration explore_schedules(const Scenario& scenario, const RunOptions& options, int schedules,
                              const std::function<void(std::uint64_t seed)>& begins = {});

}  // namespace tandem
