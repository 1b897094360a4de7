// Runs a scenario under many seeds of its engine's scheduler, to find an order of its tasks that breaks it.
#pragma once

#include <cstdint>
#include <functional>

#include "reports/comparison/exploration.h"
#include "scenarios/run/runner.h"

namespace tandem {

// Runs the scenario without a seed, then under `schedules` consecutive seeds, the first of which is
// options.schedule_seed (default: 1). Ends at the first run that fails or whose values differ. Calls options.progress
// with the number of finished runs after each step of each run, and rethrows what it throws. Calls `begins`, unless it
// is empty, with each seed before its run. Leaves the command that reproduces a failure to the caller.
//
// Throws InputError where the engine has no seeded schedule, and what run_scenario() throws for the run without a seed.
Exploration explore_schedules(Scenario scenario, const RunOptions& options, int schedules,
                              const std::function<void(std::uint64_t seed)>& begins = {});

}  // namespace tandem
