#include "scenarios/parallel_training.h"

#include "scenarios/parallel_settings.h"
#include "scenarios/workloads/divided_layers.h"
#include "scenarios/workloads/parallel_mlp.h"
#include "scenarios/workloads/sharded_layers.h"
#include "strategies/strategies.h"

namespace tandem {
namespace {

std::unique_ptr<Workload> parallel_workload(Worker& worker, const Scenario& scenario) {
  const ParallelOptions options = parallel_options(scenario);
  const ModelDivision& division = *strategy_info(scenario.strategy.name).division;
  if (const auto* layers = std::get_if<LayersSettings>(&scenario.workload.kind)) {
    if (division.layer_tables == ModelDivision::LayerTables::divided) {
      return std::make_unique<DividedLayersWorkload>(*layers, worker, options);
    }
    return std::make_unique<ShardedLayersWorkload>(*layers, worker, options);
  }
  return std::make_unique<ParallelMlpWorkload>(std::get<MlpSettings>(scenario.workload.kind), worker, options,
                                               division.make_trainer);
}

}  // namespace

void train_parallel(Worker& worker, const Scenario& scenario, const std::function<void(int step, int steps)>& progress,
                    Report& report) {
  const std::unique_ptr<Workload> workload = parallel_workload(worker, scenario);
  train_steps(*workload, worker, scenario.steps, progress, report);
  report.replicas = parallel_options(scenario).data;
  report.cross_device_ops = "none";
}

}  // namespace tandem
