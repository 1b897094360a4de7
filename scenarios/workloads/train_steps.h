// The training loop over a workload.
//
// Threads: a worker's task.
#pragma once

#include <functional>
#include <optional>

#include "scenarios/workloads/saved_steps.h"
#include "scenarios/workloads/workload.h"

namespace tandem {

// Trains from prepare() to finish(). Worker 0 calls `progress`, which may be empty, after each step. `between` may be
// null. With checkpoints, the first step is the one after the last that was saved, and at the end they are deleted.
void train_steps(Workload& workload, Worker& worker, int steps,
                 const std::function<void(int step, int steps)>& progress, Report& report,
                 BetweenSteps* between = nullptr, const std::optional<StepCheckpoints>& checkpoints = std::nullopt);

}  // namespace tandem
