// `tandem check --against PROGRAM`: launches of this and of another tandem that take turns.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cli/base/progress_line.h"
#include "cli/check/check_flags.h"
#include "reports/checks/paired_check.h"
#include "reports/checks/suite.h"
#include "scenarios/scenario/scenario.h"

namespace tandem {

class PairedLaunches {
 public:
  PairedLaunches(const CheckFlags& flags, const Scenario& scenario);

  // Launches pairs until a look decides. Throws InputError for launches that cannot be compared, and RunError for one
  // that fails.
  void run(int comparisons, ProgressLine& progress);
  // Looks at the launches again, as one of fewer comparisons. Returns whether there is a verdict now that was not
  // there before.
  bool reconsider(int comparisons);

  Verdict verdict() const { return result_->verdict; }
  CheckedScenario result() const;

 private:
  void launch_next();
  std::span<const Launch> decisive_launches() const;  // those of the look that gave the result

  const CheckFlags& flags_;
  const std::string file_;
  const std::string name_;
  const Expectations expect_;
  const std::uint64_t seed_;
  const LaunchOrder order_;
  std::vector<Launch> launches_;
  std::optional<PairedResult> result_;
};

// Throws InputError unless the other program is a file.
void check_other_program(const std::string& program);

}  // namespace tandem
