#include "scenarios/job/parallel_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "scenarios/job/tasks.h"
#include "scenarios/workloads/computed/computed_model.h"
#include "scenarios/workloads/mlp_layers.h"
#include "strategies/parallel/division.h"
#include "strategies/parallel/layout/layer_division.h"
#include "strategies/strategies.h"
#include "topologies/joined_machines.h"

namespace tandem {
namespace {

std::string mesh_text(const MeshSettings& mesh) {
  const std::string context = mesh.context > 1 ? fmt::format(" x context {}", mesh.context) : "";
  return fmt::format("data {}{} x tensor {} x pipeline {}", mesh.data, context, mesh.tensor, mesh.pipeline);
}

// Returns what a trace lacks, whatever the strategy.
std::optional<DivisionProblem> trace_problem(const Scenario& scenario, const TraceSettings& trace) {
  if (training_devices(scenario) == trace.world) return std::nullopt;
  return DivisionProblem{"devices", fmt::format("a trace of {} ranks needs as many devices, found {}", trace.world,
                                                training_devices(scenario))};
}

}  // namespace

ParallelOptions parallel_options(const Scenario& scenario) {
  const MeshSettings& mesh = scenario.strategy.mesh;
  const StrategyInfo& info = strategy_info(scenario.strategy.name);
  ParallelOptions options{
      .micro_batches = mesh.micro_batches, .virtual_stages = mesh.virtual_stages, .batch = scenario.workload.batch};
  options.stage_blocks = mesh.stage_blocks;
  options.order = mesh.order;
  options.per_worker = scenario.devices.per_worker;
  options.joined = options.per_worker;
  if (scenario.topology) {
    const std::int64_t workers = training_devices(scenario) / options.per_worker;
    const std::int64_t machines = scenario.topology->worker_count();
    const auto sharing = static_cast<int>(std::max<std::int64_t>(1, (workers + machines - 1) / machines));
    options.joined *= joined_machines(*scenario.topology) * sharing;
  }
  const auto* layers = std::get_if<LayersSettings>(&scenario.workload.kind);
  const auto balance = [&] {
    if (mesh.balances_stages && layers != nullptr)
      options.stage_blocks = balanced_stages(layers->model, options.stages());
  };
  options.own = with_usual_values(info.name, info.keys, scenario.strategy.own);
  if (const auto axis = info.division->axis) {
    options.*axis = static_cast<int>(training_devices(scenario));
    balance();
    return options;
  }
  options.data = mesh.data;
  options.tensor = mesh.tensor;
  options.pipeline = mesh.pipeline;
  options.context = mesh.context;
  options.context_exchange = mesh.context_exchange;
  options.axis_order = mesh.axis_order;
  options.expert = mesh.expert;
  options.expert_tensor = mesh.expert_tensor;
  options.scatter_gather = mesh.scatter_gather;
  options.distributed_optimizer = mesh.distributed_optimizer;
  options.overlap_gather = mesh.overlap_gather;
  options.shard_parameters = mesh.shard_parameters;
  options.overlap_experts = mesh.overlap_experts;
  options.overlap_shared_expert = mesh.overlap_shared_expert;
  options.replicate = mesh.replicate;
  balance();
  return options;
}

int devices_of_one_replica(const Scenario& scenario) {
  const auto& division = strategy_info(scenario.strategy.name).division;
  const bool sizes_are_given = division && division->axis == nullptr;
  const MeshSettings& mesh = scenario.strategy.mesh;
  return sizes_are_given ? mesh.context * mesh.tensor * mesh.pipeline : 1;
}

Scenario one_replica_of(const Scenario& scenario, int replicas) {
  Scenario alone = scenario;
  alone.faults = nullptr;
  alone.evaluation.reset();
  const int devices = devices_of_one_replica(scenario);
  alone.devices.per_worker = std::min(devices, scenario.devices.per_worker);
  alone.devices.workers = (devices + alone.devices.per_worker - 1) / alone.devices.per_worker;
  alone.devices.ps = parameter_servers(scenario);
  alone.strategy.mesh.data = 1;
  alone.strategy.mesh.replicate = 1;
  const MeshSettings& mesh = scenario.strategy.mesh;
  const int tensor_of_experts = mesh.expert_tensor == 0 ? mesh.tensor : mesh.expert_tensor;
  alone.strategy.mesh.expert = std::gcd(mesh.expert, mesh.context * (mesh.tensor / tensor_of_experts));
  const bool divides_experts = alone.strategy.mesh.expert > 1;
  alone.strategy.mesh.overlap_experts = mesh.overlap_experts && divides_experts;
  alone.strategy.mesh.overlap_shared_expert = mesh.overlap_shared_expert && divides_experts;
  alone.workload.batch = std::max(1, scenario.workload.batch / replicas);
  return alone;
}

std::optional<DivisionProblem> parallel_problem(const Scenario& scenario) {
  if (const auto* trace = std::get_if<TraceSettings>(&scenario.workload.kind)) return trace_problem(scenario, *trace);
  const StrategyInfo& strategy = strategy_info(scenario.strategy.name);
  const auto* table = std::get_if<LayersSettings>(&scenario.workload.kind);
  if (!strategy.division && table != nullptr && table->offload.any()) {
    return DivisionProblem{"workload.offload",
                           fmt::format("strategy '{}' keeps all on its devices; strategy mesh, with "
                                       "as many replicas as data, keeps some on their host",
                                       strategy.name)};
  }
  if (!strategy.division) return std::nullopt;
  const ParallelOptions options = parallel_options(scenario);
  const std::int64_t needed = options.devices();
  if (const std::int64_t found = training_devices(scenario); needed != found) {
    const std::int64_t of_replica = needed / options.data;
    const std::string fitting = found % of_replica == 0
                                    ? fmt::format("; data {} fits them", found / of_replica)
                                    : fmt::format("; the {} of a replica do not divide them", of_replica);
    return DivisionProblem{"strategy", fmt::format("a mesh of {} needs {} devices, found {}{}",
                                                   mesh_text(scenario.strategy.mesh), needed, found, fitting)};
  }
  const Division& division = *strategy.division->how;
  if (const auto* layers = std::get_if<LayersSettings>(&scenario.workload.kind)) {
    if (auto problem = division.problem({layers->model, *layers, options}); problem || !layers->learning)
      return problem;
    return computed_division_problem(*layers, options);
  }
  const auto only_for_layers = [](const char* path) {
    return DivisionProblem{path, "is for tables of layers (kind: layers)"};
  };
  if (options.shard_parameters) return only_for_layers("strategy.shard_parameters");
  const LayersSettings layers = layers_of(std::get<MlpSettings>(scenario.workload.kind));
  return division.problem({layers.model, layers, options});
}

}  // namespace tandem
