// Compares a measured run with the model's run of the same scenario, so that people see whether its figures are normal.
#pragma once

#include "reports/run/report.h"
#include "scenarios/reading/scenario_flags.h"
#include "scenarios/run/runner.h"
#include "scenarios/scenario/scenario.h"

namespace tandem {

// Adds what the model expects of a measured run of the scenario with these flags and options, on the topology of the
// flags or of the scenario. Does nothing for a simulation, or without a topology. If the model cannot run the scenario
// on the topology, adds a note to the report.
void add_expectation(Report& measured, const Scenario& scenario, const ScenarioFlags& flags, const RunOptions& options);

}  // namespace tandem
