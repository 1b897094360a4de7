#include "scenarios/workloads/train_steps.h"

#include <memory>

namespace tandem {

void train_steps(Workload& workload, Worker& worker, int steps,
                 const std::function<void(int step, int steps)>& progress, Report& report, BetweenSteps* between,
                 const std::optional<StepCheckpoints>& checkpoints) {
  workload.prepare();
  std::unique_ptr<SavedSteps> saved;
  if (checkpoints) saved = std::make_unique<SavedSteps>(workload, worker, *checkpoints);
  for (Device* device : worker.devices()) device->synchronize();
  if (between != nullptr) between->begin();
  for (int step = saved ? saved->first_step() : 0; step < steps; ++step) {
    const auto run = [&] {
      worker.begin_step(step);
      workload.run_step(step);
      worker.end_step();
    };
    // After the last step nothing is saved: a run that is interrupted then has a step left to do.
    if (saved && step + 1 < steps) {
      saved->run(run);
    } else {
      run();
    }
    if (progress && worker.index() == 0) progress(step + 1, steps);
    if (between != nullptr) between->step_done(step + 1);
  }
  workload.finish(report, worker.capabilities().carries_values);
  report.throughput_unit = workload.throughput_unit();
  if (saved) saved->end();
}

}  // namespace tandem
