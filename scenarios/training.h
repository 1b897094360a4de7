// One worker's part of a scenario's job, written on a strategy.
#pragma once

#include <functional>

#include "engine/worker.h"
#include "reports/report.h"
#include "scenarios/scenario.h"
#include "strategies/variables/stored_variable.h"

namespace tandem {

// What a worker knows when it is done. Each worker has one of its own, so that no lock is needed.
struct TrainingResult {
  Report report;        // what was learned, how many replicas are in sync; no times
  Staleness staleness;  // of this worker's updates
};

// Trains to the last step; the tasks of the job "ps" have nothing to do. `progress`, which may be empty, is called by
// worker 0 after each step.
void train(Worker& worker, const Scenario& scenario, const std::function<void(int step, int steps)>& progress,
           TrainingResult& result);

}  // namespace tandem
