#include "scenarios/alike.h"

#include <cstdint>
#include <map>

#include "scenarios/job.h"
#include "scenarios/parallel_settings.h"
#include "strategies/input/distributed_dataset.h"
#include "strategies/parallel/linear.h"
#include "strategies/parallel/trainer.h"
#include "strategies/strategies.h"

namespace tandem {
namespace {

// A device's share of the batch and of the model.
using Share = std::vector<std::int64_t>;

// The mesh of a strategy that divides the model counts its ranks by stage, then replica, then part of a sequence, then
// part of a layer. Which experts a device has makes no difference: all have equally many.
std::vector<Share> shares_of_mesh(const ParallelOptions& options, int batch) {
  std::vector<Share> shares;
  for (int stage = 0; stage < options.pipeline; ++stage) {
    for (int replica = 0; replica < options.data; ++replica) {
      const std::int64_t examples = part_of(batch, options.data, replica).count;
      for (int part = 0; part < options.context * options.tensor; ++part) {
        shares.push_back({stage, part % options.tensor, examples});
      }
    }
  }
  return shares;
}

std::vector<Share> shares_of_replicas(int batch, int replicas) {
  std::vector<Share> shares;
  for (const std::int64_t examples : rebatch(batch, replicas)) shares.push_back({examples});
  return shares;
}

}  // namespace

std::vector<int> alike_tasks(const Scenario& scenario) {
  if (parameter_servers(scenario) > 0) return {};
  if (std::holds_alternative<TraceSettings>(scenario.workload.kind)) return {};
  const StrategyInfo& strategy = strategy_info(scenario.strategy.name);
  const int workers = training_workers(scenario);
  const int devices = scenario.devices.per_worker;
  const int batch = scenario.workload.batch;
  const std::vector<Share> shares = strategy.division ? shares_of_mesh(parallel_options(scenario), batch)
                                                      : shares_of_replicas(batch, workers * devices);
  std::map<std::vector<Share>, int> numbers;
  std::vector<int> alike;
  for (int worker = 0; worker < workers; ++worker) {
    const auto first = shares.begin() + std::ptrdiff_t{worker} * devices;
    const auto [known, is_new] = numbers.try_emplace({first, first + devices}, static_cast<int>(numbers.size()));
    alike.push_back(known->second);
  }
  return alike;
}

}  // namespace tandem
