#include "scenarios/run/explore.h"

#include "engine/engine_info.h"

namespace tandem {
namespace {

// Returns what went wrong. If the run ended like the one without a seed, counts it and returns nothing.
std::string problem_of(const Scenario& scenario, const RunOptions& options, Exploration& exploration) {
  try {
    const Report report = run_scenario(scenario, options).report;
    std::string difference;
    if (exploration.values_compared) difference = difference_of_values(report, exploration.unseeded);
    if (difference.empty()) exploration.add(report);
    return difference;
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace

Exploration explore_schedules(Scenario scenario, const RunOptions& options, int schedules,
                              const std::function<void(std::uint64_t)>& begins) {
  const EngineInfo& engine = engine_info(scenario.engine.name);
  if (!engine.seeded_schedule) {
    throw InputError(
        {scenario.problem_at("engine", "engine '" + std::string(engine.name) +
                                           "' has no seeded schedule, so there are no schedules to explore")});
  }
  scenario.topology = topology_for(scenario);  // once, since no two calibrations are equal
  scenario.engine.symmetry = false;
  RunOptions run = options;
  run.measures_scaling = false;
  run.schedule_seed.reset();
  int runs = 0;
  const auto progress = [&] {
    if (options.progress) options.progress(runs, schedules);
  };
  run.progress = [&](int, int) { progress(); };

  Exploration exploration;
  exploration.schedules = schedules;
  exploration.first_seed = options.schedule_seed.value_or(1);
  exploration.unseeded = run_scenario(scenario, run).report;
  // The values that asynchronous workers compute depend on their order by design.
  const Report& unseeded = exploration.unseeded;
  exploration.values_compared = !unseeded.asynchronous && (!unseeded.loss.empty() || !unseeded.metrics.empty());
  for (; runs < schedules; ++runs) {
    run.schedule_seed = exploration.first_seed + static_cast<std::uint64_t>(runs);
    if (begins) begins(*run.schedule_seed);
    const std::string problem = problem_of(scenario, run, exploration);
    progress();  // rethrows what it threw within the run, which is not the run's failure
    if (problem.empty()) continue;
    exploration.failure = {.seed = *run.schedule_seed, .what = problem, .command = {}};
    break;
  }
  return exploration;
}

}  // namespace tandem
