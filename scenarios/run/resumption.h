// Real runs that save checkpoints (recovery.checkpoint.directory), and go on from one where a run before them did not
// come to its end.
#pragma once

#include <functional>
#include <optional>

#include "scenarios/run/run_result.h"
#include "scenarios/scenario/scenario.h"
#include "scenarios/workloads/saved_steps.h"

namespace tandem {

// Where the workers of this run save checkpoints; nothing where they save none. Simulations only let the time pass.
std::optional<StepCheckpoints> step_checkpoints(const Scenario& scenario);

// Throws InputError where the directory of a scenario has a checkpoint of a run that was interrupted.
void refuse_interrupted(const Scenario& scenario);

// Runs a scenario that saves checkpoints: from the last one, if there is one, to the end. Where the faults of the
// scenario lose a worker and its policy is to restart all, runs it again. `run` runs what is left. Throws InputError
// for a scenario whose checkpoints would not have all of its state, for a directory with checkpoints of another one or
// damaged ones, and, unless `may_resume`, for a directory with any.
using RunRest = std::function<RunResult(const Scenario&)>;
RunResult run_with_checkpoints(const Scenario& scenario, bool may_resume, const RunRest& run);

}  // namespace tandem
