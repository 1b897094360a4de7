// Plans of the same space with machines that are a little better: what a step gains by more memory or faster links, if
// the best way to train changes with them (shadow prices).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "reports/plan/plan_table.h"
#include "scenarios/scenario/scenario.h"

namespace tandem {

struct WhatIf {
  std::string change;                       // "1 GB more memory of each GPU"
  std::vector<ScenarioSetting> settings{};  // of the scenario that is planned
};

// Returns the changes of these words: `memory`, 1 GB more of each GPU; `network` and `nvlink`, links of twice the
// bandwidth; `machine`, these three; KEY=VALUE, another value for a key of the scenario. `machine` leaves out what its
// topology does not have. Throws InputError for other words, for a change that
// the topology has no figure for, and for a key that scenarios or this space do not let be changed.
std::vector<WhatIf> what_ifs(const std::vector<std::string>& words, const Scenario& scenario);

// Searches the space of `scenario`, whose plan is `table`, with each change, and adds what it finds to the table.
// `plan` fills in the table of a changed scenario, of which the best point is wanted.
void add_what_ifs(const std::vector<WhatIf>& changes, const Scenario& scenario,
                  const std::function<PlanTable(const WhatIf& change, const Scenario& changed)>& plan,
                  PlanTable& table);

}  // namespace tandem
