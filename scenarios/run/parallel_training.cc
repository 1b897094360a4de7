#include "scenarios/run/parallel_training.h"

#include "scenarios/workloads/divided.h"
#include "scenarios/workloads/trainable.h"

namespace tandem {

void train_parallel(Worker& worker, const Job& job, const std::function<void(int step, int steps)>& progress,
                    Report& report) {
  const Division& division = *job.strategy.division->how;
  DividedWorkload workload(worker, trainable_model(job.scenario.workload, worker), division, *job.mesh);
  if (job.mlp != nullptr) workload.evaluate_on(job.mlp->rows);
  train_steps(workload, worker, job.scenario.steps, progress, report);
  report.replicas = job.mesh->data;
  report.cross_device_ops = "none";
}

}  // namespace tandem
