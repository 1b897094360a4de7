// The files that `tandem check` writes beside its result.
#pragma once

#include "cli/check/check_flags.h"
#include "reports/checks/suite.h"

namespace tandem {

// Throws Error, before a long run, for a file that cannot be written.
void check_outputs_writable(const CheckFlags& flags);

// Writes the files that were asked for. On GitHub also the summary of the job ($GITHUB_STEP_SUMMARY), and annotations
// on stderr ($GITHUB_ACTIONS).
void write_outputs(const CheckFlags& flags, const CheckedSuite& suite);

}  // namespace tandem
