// Explains in words whether a number is normal: what is expected, the critical path, and who waits for whom.
#pragma once

#include <string>

#include "reports/report.h"

namespace tandem {

// Each text is empty where the report lacks the figures for it.
std::string expectation_text(const Report& report);
std::string critical_path_text(const Report& report);
std::string waiting_text(const Report& report);

}  // namespace tandem
