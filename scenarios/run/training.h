// Trains one worker's part of a scenario's job with a strategy that replicates the model.
#pragma once

#include <functional>

#include "engine/worker.h"
#include "reports/run/report.h"
#include "scenarios/job/job.h"
#include "strategies/variables/stored_variable.h"

namespace tandem {

// The result of one worker's training. Each worker fills in its own, so that no lock is needed.
struct TrainingResult {
  Report report;        // losses, metrics, the number of replicas in sync; no times
  Staleness staleness;  // of this worker's updates
};

// Trains to the last step; does nothing for tasks of the job "ps". Worker 0 calls `progress`, which may be empty, after
// each step.
void train(Worker& worker, const Job& job, const std::function<void(int step, int steps)>& progress,
           TrainingResult& result);

}  // namespace tandem
