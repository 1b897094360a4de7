// Which scenarios a check is of, by which mode each is judged, and the verdicts over all of them.
#pragma once

#include <exception>
#include <string>
#include <vector>

#include "cli/base/progress_line.h"
#include "cli/check/check_flags.h"
#include "reports/checks/history.h"
#include "reports/checks/suite.h"

namespace tandem {

// Whether this names many scenarios: a folder, or a file that is no YAML and lists them.
bool is_suite(const std::string& target);

// The files of a folder by name, or those of a list: one a line, relative to the list's folder; '#' begins a comment.
// Throws InputError if there are none.
std::vector<std::string> scenario_files(const std::string& target);

// Checks the scenarios one after another. Simulated ones are compared with their golden reports, measured ones with
// another program, with their history, or else with a stored report. What goes wrong with a scenario is its result, and
// the others are still checked.
struct CheckedScenarios {
  CheckedSuite suite;
  std::vector<HistoryLaunch> launches;  // for append_history()
  std::exception_ptr failure{};         // of a scenario that is the only one
};
CheckedScenarios check_scenarios(const CheckFlags& flags, ProgressLine& progress);

// The exit code of all: 1 if one is bad, else that of the first that failed, else 6 if one is inconclusive, else 0.
int exit_code_of(const CheckedSuite& suite);

}  // namespace tandem
