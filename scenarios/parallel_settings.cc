#include "scenarios/parallel_settings.h"

#include <fmt/format.h>

#include <numeric>

#include "scenarios/job.h"
#include "scenarios/layer_division.h"
#include "strategies/base/errors.h"
#include "strategies/parallel/trainer.h"
#include "strategies/strategies.h"

namespace tandem {
namespace {

std::string mesh_text(const MeshSettings& mesh) {
  const std::string context = mesh.context > 1 ? fmt::format(" x context {}", mesh.context) : "";
  return fmt::format("data {}{} x tensor {} x pipeline {}", mesh.data, context, mesh.tensor, mesh.pipeline);
}

std::optional<ParallelProblem> problem_at(std::string path, std::optional<std::string> message) {
  if (!message) return std::nullopt;
  return ParallelProblem{std::move(path), std::move(*message)};
}

// Returns why a table of layers cannot be divided over a mesh; each size of the mesh must divide its dimension evenly.
std::optional<ParallelProblem> table_problem(const LayersSettings& layers, const ParallelOptions& options) {
  if (auto problem = problem_at("strategy.tensor", tensor_problem(layers.model, options.tensor))) return problem;
  if (auto problem = problem_at("strategy.pipeline", stage_problem(layers.model, options.stages()))) return problem;
  if (auto problem = problem_at("strategy.context", context_problem(layers.model, options.context))) return problem;
  if (options.data * options.context % options.expert != 0) {
    return ParallelProblem{
        "strategy.expert",
        fmt::format("{} devices that divide the experts do not divide the {} of data {} x context {}", options.expert,
                    options.data * options.context, options.data, options.context)};
  }
  if (auto problem = problem_at("strategy.expert", expert_problem(layers.model, options.expert))) return problem;
  if (layers.sequence_parallel) {
    auto problem =
        problem_at("workload.sequence_parallel", sequence_problem(layers.model, options.tensor, options.context));
    if (problem) return problem;
  }
  if (options.batch % options.data != 0) {
    return ParallelProblem{"strategy.data",
                           fmt::format("{} replicas do not divide a batch of {}", options.data, options.batch)};
  }
  if (options.batch / options.data % options.micro_batches != 0) {
    return ParallelProblem{"strategy.micro_batches",
                           fmt::format("{} micro-batches do not divide a replica's batch of {}", options.micro_batches,
                                       options.batch / options.data)};
  }
  return std::nullopt;
}

// Returns what a table of layers cannot do with a strategy, whatever the sizes of its mesh.
std::optional<ParallelProblem> kind_problem(const LayersSettings& layers, const StrategyInfo& strategy) {
  using LayerTables = ModelDivision::LayerTables;
  const LayerTables use = strategy.division->layer_tables;
  if (use == LayerTables::none) {
    return ParallelProblem{"workload.kind", fmt::format("strategy '{}' trains workloads of kind 'mlp'", strategy.name)};
  }
  if (use == LayerTables::gathered && layers.parameter_dtype) {
    return ParallelProblem{"workload.parameter_dtype",
                           fmt::format("strategy '{}' keeps parameters in the workload's dtype", strategy.name)};
  }
  if (use == LayerTables::divided && layers.gradient_accumulation_steps > 1) {
    return ParallelProblem{"workload.gradient_accumulation_steps",
                           fmt::format("strategy '{}' accumulates gradients over its micro_batches", strategy.name)};
  }
  return std::nullopt;
}

// Returns why a table or a perceptron cannot be divided as the options say.
std::optional<ParallelProblem> division_problem(const WorkloadSettings& workload, const StrategyInfo& strategy,
                                                const ParallelOptions& options) {
  try {
    check_interleaving(options);
  } catch (const ValueError& error) {
    return ParallelProblem{"strategy.virtual_stages", error.what()};
  }
  const auto* layers = std::get_if<LayersSettings>(&workload.kind);
  if (layers && strategy.division->layer_tables == ModelDivision::LayerTables::divided) {
    return table_problem(*layers, options);
  }
  for (const auto& [key, size] : {std::pair{"context", options.context}, {"expert", options.expert}}) {
    if (size > 1) return ParallelProblem{fmt::format("strategy.{}", key), "is for workloads of kind 'layers'"};
  }
  if (options.distributed_optimizer) {
    return ParallelProblem{"strategy.distributed_optimizer", "is for workloads of kind 'layers'"};
  }
  try {
    const auto* mlp = std::get_if<MlpSettings>(&workload.kind);
    check_division(mlp ? linear_stack(*mlp) : LinearStack{.sizes = {1, 1}}, options);
  } catch (const ValueError& error) {
    return ParallelProblem{"strategy", error.what()};
  }
  return std::nullopt;
}

// Returns what a trace lacks, whatever the strategy.
std::optional<ParallelProblem> trace_problem(const Scenario& scenario, const TraceSettings& trace) {
  if (training_devices(scenario) == trace.world) return std::nullopt;
  return ParallelProblem{"devices", fmt::format("a trace of {} ranks needs as many devices, found {}", trace.world,
                                                training_devices(scenario))};
}

}  // namespace

ParallelOptions parallel_options(const Scenario& scenario) {
  const MeshSettings& mesh = scenario.strategy.mesh;
  const StrategyInfo& info = strategy_info(scenario.strategy.name);
  ParallelOptions options{
      .micro_batches = mesh.micro_batches, .virtual_stages = mesh.virtual_stages, .batch = scenario.workload.batch};
  options.own = with_usual_values(info.name, info.keys, scenario.strategy.own);
  if (const auto axis = info.division->axis) {
    options.*axis = static_cast<int>(training_devices(scenario));
    return options;
  }
  options.data = mesh.data;
  options.tensor = mesh.tensor;
  options.pipeline = mesh.pipeline;
  options.context = mesh.context;
  options.expert = mesh.expert;
  options.scatter_gather = mesh.scatter_gather;
  options.distributed_optimizer = mesh.distributed_optimizer;
  options.overlap_gather = mesh.overlap_gather;
  return options;
}

LayerDivision layer_division(const LayersSettings& layers, const ParallelOptions& options) {
  return {.context = options.context,
          .expert = options.expert,
          .tensor = options.tensor,
          .divides_rows = layers.sequence_parallel && options.tensor > 1};
}

LinearStack linear_stack(const MlpSettings& settings) {
  LinearStack stack;
  stack.sizes.push_back(settings.rows->columns);
  stack.sizes.insert(stack.sizes.end(), settings.hidden.begin(), settings.hidden.end());
  stack.sizes.push_back(settings.rows->classes);
  stack.sgd = {.learning_rate = settings.learning_rate, .momentum = settings.momentum};
  return stack;
}

int devices_of_one_replica(const Scenario& scenario) {
  const auto& division = strategy_info(scenario.strategy.name).division;
  const bool sizes_are_given = division && division->axis == nullptr;
  const MeshSettings& mesh = scenario.strategy.mesh;
  return sizes_are_given ? mesh.context * mesh.tensor * mesh.pipeline : 1;
}

Scenario one_replica_of(const Scenario& scenario, int replicas) {
  Scenario alone = scenario;
  const int devices = devices_of_one_replica(scenario);
  alone.devices.per_worker = std::min(devices, scenario.devices.per_worker);
  alone.devices.workers = (devices + alone.devices.per_worker - 1) / alone.devices.per_worker;
  alone.devices.ps = parameter_servers(scenario);
  alone.strategy.mesh.data = 1;
  alone.strategy.mesh.expert = std::gcd(scenario.strategy.mesh.expert, scenario.strategy.mesh.context);
  alone.workload.batch = std::max(1, scenario.workload.batch / replicas);
  return alone;
}

std::optional<ParallelProblem> parallel_problem(const Scenario& scenario) {
  if (const auto* trace = std::get_if<TraceSettings>(&scenario.workload.kind)) return trace_problem(scenario, *trace);
  const StrategyInfo& strategy = strategy_info(scenario.strategy.name);
  if (!strategy.division) return std::nullopt;
  if (const auto* layers = std::get_if<LayersSettings>(&scenario.workload.kind)) {
    if (auto problem = kind_problem(*layers, strategy)) return problem;
  }
  const ParallelOptions options = parallel_options(scenario);
  const std::int64_t needed = options.devices();
  if (needed != training_devices(scenario)) {
    return ParallelProblem{
        "strategy", fmt::format("a mesh of {} needs {} devices, found {}", mesh_text(scenario.strategy.mesh), needed,
                                training_devices(scenario))};
  }
  return division_problem(scenario.workload, strategy, options);
}

}  // namespace tandem
