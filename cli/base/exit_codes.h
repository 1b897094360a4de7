// How each kind of failure ends the program (docs/exit-codes.md).
#pragma once

namespace tandem {

enum ExitCode : int {
  kOk = 0,
  kNotMet = 1,  // a regression, or an expectation or budget that does not hold
  kUsage = 2,
  kBadInput = 3,
  kUnavailable = 4,
  kRunFailed = 5,
  kInconclusive = 6,
  kCannotBeJudged = 125,  // `check --bisect` only
  kInterrupted = 130,
};

}  // namespace tandem
