// `tandem check --history FILE`: a launch beside the earlier ones of its scenario on its machine.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/base/progress_line.h"
#include "cli/check/check_flags.h"
#include "reports/checks/history.h"
#include "reports/checks/suite.h"
#include "scenarios/scenario/scenario.h"

namespace tandem {

class HistoryCheck {
 public:
  // `history` has at least the launches of this scenario, and must outlive this.
  HistoryCheck(const CheckFlags& flags, const Scenario& scenario, std::span<const HistoryLaunch> history);

  // Launches the scenario; once, or where that is suspect two more times.
  void run(ProgressLine& progress);
  // Among several scenarios: takes the verdict back if it does not survive their correction.
  void correct(double adjusted_p_value, int comparisons);

  double p_value() const;  // one-sided, of no regression; 1 without a level
  CheckedScenario result() const;
  // The lines of all launches, with the verdict.
  std::vector<HistoryLaunch> lines() const;

 private:
  HistoryLaunch launch_once(ProgressLine& progress);
  HistoryLaunch launch_undisturbed(ProgressLine& progress);

  const CheckFlags& flags_;
  const std::string file_;
  const std::string name_;
  const Expectations expect_;
  const std::span<const HistoryLaunch> history_;
  HistoryLimits limits_;
  int launches_ = 0;
  std::vector<HistoryLaunch> disturbed_;  // and launched again
  std::vector<std::string> unmet_;        // expectations of the last launch
  HistoryResult result_;
};

// Makes the launches of a result the begin of a new level.
void accept(HistoryResult& result);
// The result as that of a scenario in `file`.
CheckedScenario checked_by(const HistoryResult& result, const HistoryLimits& limits, const std::string& file);

// The commit that is checked: that of the options, of the environment of a CI system, or of git; empty: not known.
std::string commit_of(const CheckFlags& flags);
// The time now as "2026-11-22T12:05:00Z"; that of SOURCE_DATE_EPOCH if it is set.
std::string utc_date();

}  // namespace tandem
