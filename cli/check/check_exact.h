// Checks of times that repeat exactly: `tandem check --baseline`, a run beside a stored report, and `--history`.
#pragma once

#include <span>

#include "cli/base/progress_line.h"
#include "cli/check/check_flags.h"
#include "reports/checks/history.h"
#include "reports/checks/suite.h"
#include "scenarios/scenario/scenario.h"

namespace tandem {

// Runs the scenario and compares it with the report in `baseline`; with --update stores it there. A simulation is not
// run where the stored report was made by the same program from the same scenario and topology.
CheckedScenario check_exact(const CheckFlags& flags, const Scenario& scenario, const std::string& baseline,
                            ProgressLine& progress);

// Runs a simulation and says whether its time is that of its history.
CheckedScenario check_exact_history(const CheckFlags& flags, const Scenario& scenario,
                                    std::span<const HistoryLaunch> history, ProgressLine& progress);

}  // namespace tandem
