#include "scenarios/run/parallel_training.h"

#include "scenarios/run/evaluations_of_job.h"
#include "scenarios/workloads/divided.h"
#include "scenarios/workloads/train_steps.h"
#include "scenarios/workloads/trainable.h"

namespace tandem {

void train_parallel(Worker& worker, const Job& job, const std::function<void(int step, int steps)>& progress,
                    Report& report) {
  const Division& division = *job.strategy.division->how;
  DividedWorkload workload(worker, trainable_model(job.scenario.workload, worker), division, *job.mesh);
  if (job.mlp != nullptr) workload.evaluate_on(job.mlp->rows);
  const std::unique_ptr<EvaluationsOfWorker> evaluations = evaluations_of_worker(job, worker, workload);
  train_steps(workload, worker, job.scenario.steps, progress, report, evaluations.get());
  if (evaluations) finish(*evaluations, report);
  report.replicas = job.mesh->data;
  report.cross_device_ops = "none";
}

}  // namespace tandem
