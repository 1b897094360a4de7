// Trains a job with a strategy that divides the model.
#pragma once

#include <functional>

#include "reports/run/report.h"
#include "scenarios/job/job.h"

namespace tandem {

class Worker;

// Trains one worker's part of the job. parallel_problem() must have found nothing. Worker 0 calls `progress`, which may
// be empty, after each step.
void train_parallel(Worker& worker, const Job& job, const std::function<void(int step, int steps)>& progress,
                    Report& report);

}  // namespace tandem
