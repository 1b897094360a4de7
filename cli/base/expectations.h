// What a scenario's `expect:` asks of a run.
#pragma once

#include <string>
#include <vector>

#include "reports/checks/suite.h"
#include "reports/run/report.h"
#include "scenarios/scenario/scenario.h"

namespace tandem {

// Returns a sentence for each expectation that does not hold: "test_accuracy is 0.81; at least 0.9 is expected".
std::vector<std::string> unmet_expectations(const Expectations& expect, const Report& report);

// Makes these sentences part of a check's result, which then ends with 1, and prints them on stderr.
void add_unmet(const std::vector<std::string>& unmet, CheckedScenario& checked);

// Prints those sentences on stderr. Returns kOk, or kNotMet if there are any.
int report_expectations(const Expectations& expect, const Report& report);

}  // namespace tandem
