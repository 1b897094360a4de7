// What a scenario's `expect:` asks of a run.
#pragma once

#include <string>
#include <vector>

#include "reports/report.h"
#include "scenarios/scenario.h"

namespace tandem {

// Returns a sentence for each expectation that does not hold: "test_accuracy is 0.81; at least 0.9 is expected".
std::vector<std::string> unmet_expectations(const Expectations& expect, const Report& report);

// Prints those sentences on stderr. Returns kOk, or kNotMet if there are any.
int report_expectations(const Expectations& expect, const Report& report);

}  // namespace tandem
