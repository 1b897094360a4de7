// Is this number normal? The model's run of a scenario that was measured.
#pragma once

#include "reports/report.h"
#include "scenarios/runner.h"
#include "scenarios/scenario.h"

namespace tandem {

// Adds what the model expects of a measured run on the topology of the options or of the scenario. Does nothing for a
// simulation, and without a topology; a topology on which the model cannot run the scenario is a note of the report.
void add_expectation(Report& measured, const Scenario& scenario, const RunOptions& options);

}  // namespace tandem
