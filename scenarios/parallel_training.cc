#include "scenarios/parallel_training.h"

#include "scenarios/parallel_settings.h"
#include "scenarios/workloads/parallel_mlp.h"
#include "scenarios/workloads/sharded_layers.h"

namespace tandem {
namespace {

std::unique_ptr<Workload> workload_of(Worker& worker, const Scenario& scenario) {
  const ParallelOptions options = parallel_options(scenario);
  if (const auto* layers = std::get_if<LayersSettings>(&scenario.workload.kind)) {
    return std::make_unique<ShardedLayersWorkload>(*layers, worker, options);
  }
  return std::make_unique<ParallelMlpWorkload>(std::get<MlpSettings>(scenario.workload.kind), worker, options,
                                               scenario.strategy.name == "fully_sharded");
}

}  // namespace

void train_parallel(Worker& worker, const Scenario& scenario, const std::function<void(int step, int steps)>& progress,
                    Report& report) {
  const std::unique_ptr<Workload> workload = workload_of(worker, scenario);
  train_steps(*workload, worker, scenario.steps, progress, report);
  report.replicas = parallel_options(scenario).data;
  report.cross_device_ops = "none";
}

}  // namespace tandem
