// Is this number normal? In words: what is expected, the critical path, and who waits for whom.
#pragma once

#include <string>

#include "reports/report.h"

namespace tandem {

// Each is empty where the report does not say.
std::string expectation_text(const Report& report);
std::string critical_path_text(const Report& report);
std::string waiting_text(const Report& report);

}  // namespace tandem
