// Explains in words whether a number is normal: what is expected, the critical path, and who waits for whom.
#pragma once

#include <string>

#include "reports/run/report.h"

namespace tandem {

// Says how far a measured step is from what is expected: "this run is +3.0 % from it, within the model's -19..+35 %".
std::string gap_text(const Report& report, const Expectation& expected);
// Says what explains most of that: "of these +1.2 ms, exposed communication explains +0.9 ms". Empty where nothing
// does.
std::string largest_term_text(const Report& report, const Expectation& expected);

// Each text is empty where the report lacks the figures for it.
std::string expectation_text(const Report& report);
std::string critical_path_text(const Report& report);
std::string waiting_text(const Report& report);

}  // namespace tandem
