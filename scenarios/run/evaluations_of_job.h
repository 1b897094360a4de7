// The evaluations of a job: by the workers that train, between steps, or by an evaluator that takes the newest
// variables from the first of them and evaluates while training goes on, as TensorFlow's SidecarEvaluator does with
// checkpoints.
//
// Threads: a worker's task.
#pragma once

#include <memory>

#include "engine/worker.h"
#include "reports/run/evaluations.h"
#include "scenarios/job/job.h"
#include "scenarios/workloads/workload.h"

namespace tandem {

// One worker's part in them, where it trains.
class EvaluationsOfWorker : public BetweenSteps {
 public:
  // Called after the last step. Waits until an evaluator has evaluated the newest variables. Returns the evaluations
  // that worker 0 knows.
  virtual Evaluations finish() = 0;
};

// Returns the part of a worker that trains; null if the job evaluates nothing. Tells the workload before prepare().
std::unique_ptr<EvaluationsOfWorker> evaluations_of_worker(const Job& job, Worker& worker, Workload& workload);

// Called after the last step: see EvaluationsOfWorker::finish(). Adds them to the worker's report, if there were any.
void finish(EvaluationsOfWorker& evaluations, Report& report);

// The program of the evaluator, a worker that does not train.
void evaluate_beside(Worker& worker, const Job& job);

}  // namespace tandem
