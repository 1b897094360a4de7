// The scenario that `tandem plan` searches: a file with what the command line changes, and a space.
#pragma once

#include "cli/base/common_options.h"
#include "cli/plan/plan_machines.h"
#include "scenarios/import/base/origins.h"
#include "scenarios/scenario/scenario.h"

namespace tandem {

struct ScenarioToPlan {
  Scenario scenario;              // with a `sweep:`
  bool has_own_strategy = true;   // false: its strategy, apart from the sweep, is one that was chosen here
  std::vector<Origin> origins{};  // of its parts, if it was imported
};

// Throws InputError.
ScenarioToPlan scenario_to_plan(const PlanQuestion& question, const CommonOptions& common);

}  // namespace tandem
