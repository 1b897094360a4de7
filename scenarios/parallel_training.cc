#include "scenarios/parallel_training.h"

#include "scenarios/parallel_settings.h"
#include "scenarios/workloads/divided.h"
#include "scenarios/workloads/trainable.h"
#include "strategies/strategies.h"

namespace tandem {

void train_parallel(Worker& worker, const Scenario& scenario, const std::function<void(int step, int steps)>& progress,
                    Report& report) {
  const Division& division = *strategy_info(scenario.strategy.name).division->how;
  DividedWorkload workload(worker, trainable_model(scenario.workload, worker), division, parallel_options(scenario));
  if (const auto* mlp = std::get_if<MlpSettings>(&scenario.workload.kind)) workload.evaluate_on(mlp->rows);
  train_steps(workload, worker, scenario.steps, progress, report);
  report.replicas = parallel_options(scenario).data;
  report.cross_device_ops = "none";
}

}  // namespace tandem
