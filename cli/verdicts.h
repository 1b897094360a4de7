// How `tandem check` shows a verdict and ends by it.
#pragma once

#include <string>

#include "cli/common_options.h"
#include "reports/check.h"

namespace tandem {

int exit_code_of(Verdict verdict);

// The text with its first ": verdict" colored, if it goes to a terminal.
std::string with_colored_verdict(std::string text, Verdict verdict, const CommonOptions& common);

}  // namespace tandem
