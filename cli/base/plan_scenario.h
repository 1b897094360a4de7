// The scenario that `tandem plan` searches: a file with what the command line changes, and a space.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/base/common_options.h"
#include "scenarios/import/base/origins.h"
#include "scenarios/scenario/scenario.h"

namespace tandem {

// What is asked. Empty or 0: as the file says.
struct PlanQuestion {
  std::string file;
  std::vector<std::string> settings{};  // --set
  std::string topology{}, devices{}, precision{}, space{};
  int batch = 0;
  std::int64_t tokens = 0;
  std::vector<std::string> strategies{};
  bool usual_space = false;
};

struct ScenarioToPlan {
  Scenario scenario;              // with a `sweep:`
  bool has_own_strategy = true;   // false: its strategy, apart from the sweep, is one that was chosen here
  std::vector<Origin> origins{};  // of its parts, if it was imported
};

// Throws InputError.
ScenarioToPlan scenario_to_plan(const PlanQuestion& question, const CommonOptions& common);

}  // namespace tandem
