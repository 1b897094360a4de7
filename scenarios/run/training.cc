#include "scenarios/run/training.h"

#include "scenarios/run/evaluations_of_job.h"
#include "scenarios/run/resumption.h"
#include "scenarios/workloads/train_steps.h"
#include "scenarios/workloads/workload.h"
#include "strategies/strategies.h"
#include "strategies/types/stored_extended.h"

namespace tandem {
namespace {

std::unique_ptr<Strategy> strategy_of(const StrategySettings& settings, Worker& worker) {
  StrategyOptions options;
  options.cross_device_ops = settings.cross_device_ops;
  options.packing = {.num_packs = settings.num_packs, .bytes_per_pack = settings.bytes_per_pack.value_or(0)};
  options.placement = settings.placement;
  options.updates = settings.updates;
  options.own = settings.own;
  return make_strategy(settings.name, worker, options);
}

void add_strategy_facts(const StrategyExtended& extended, TrainingResult& result) {
  result.report.replicas = extended.num_replicas_in_sync();
  result.report.cross_device_ops = extended.cross_device_ops_name();
  if (const auto* storing = dynamic_cast<const StoredExtended*>(&extended)) {
    result.report.asynchronous = storing->updates_asynchronously();
    result.staleness = storing->staleness();
  }
}

}  // namespace

void train(Worker& worker, const Job& job, const std::function<void(int step, int steps)>& progress,
           TrainingResult& result) {
  if (worker.job() == "ps") return;
  if (worker.job() == kEvaluatorJob) return evaluate_beside(worker, job);
  const std::unique_ptr<Strategy> strategy = strategy_of(job.scenario.strategy, worker);
  const std::unique_ptr<Workload> workload = make_workload(job.scenario.workload, *strategy);
  const std::unique_ptr<EvaluationsOfWorker> evaluations = evaluations_of_worker(job, worker, *workload);
  train_steps(*workload, worker, job.scenario.steps, progress, result.report, evaluations.get(),
              step_checkpoints(job.scenario));
  if (evaluations) finish(*evaluations, result.report);
  add_strategy_facts(strategy->extended(), result);
}

}  // namespace tandem
