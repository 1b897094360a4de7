// What a report says of its run, beside what was measured.
#pragma once

#include <vector>

#include "engine/engine.h"
#include "reports/report.h"
#include "scenarios/scenario.h"
#include "scenarios/training.h"

namespace tandem {

// Merges the results of all workers.
Report merged(const std::vector<TrainingResult>& results, const Scenario& scenario);

// Adds to a report the names of what ran, the summary of its records, and the notes for the reader.
void add_facts(Report& report, const Scenario& scenario, const Capabilities& capabilities, const Timeline& timeline);

}  // namespace tandem
