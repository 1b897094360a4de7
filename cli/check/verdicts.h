// How `tandem check` shows a verdict and ends by it.
#pragma once

#include <string>

#include "cli/base/common_options.h"
#include "reports/checks/suite.h"

namespace tandem {

int exit_code_of(Verdict verdict);

// The result's text with its first ": verdict" colored, if it goes to a terminal.
std::string with_colored_verdict(const CheckedScenario& checked, const CommonOptions& common);

}  // namespace tandem
