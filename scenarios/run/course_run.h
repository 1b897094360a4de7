// Runs a scenario whose job loses workers: simulates a few steps in each state of its cluster, and makes the course of
// the whole job of their times.
#pragma once

#include <functional>

#include "scenarios/job/job.h"
#include "scenarios/run/run_result.h"

namespace tandem {

// Whether the faults of a simulated job are those of a course: workers are lost, checkpoints are written, or its steps
// are too many to be simulated one by one.
bool has_course(const Scenario& scenario);

// Returns the result of some undisturbed steps, with the course of the job. `run` runs a scenario without a course.
// `for_report`: whether the result is for its report only.
using RunScenario = std::function<RunResult(const Scenario&, bool for_report)>;
RunResult run_course(const Scenario& scenario, const RunScenario& run);

}  // namespace tandem
