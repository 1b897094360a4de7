#include "scenarios/parallel_settings.h"

#include <fmt/format.h>

#include "scenarios/job.h"
#include "strategies/base/errors.h"
#include "strategies/parallel/trainer.h"
#include "strategies/strategies.h"

namespace tandem {
namespace {

int device_count(const Scenario& scenario) {
  return training_workers(scenario) * scenario.devices.per_worker;
}

std::string mesh_text(const MeshSettings& mesh) {
  return fmt::format("data {} x tensor {} x pipeline {}", mesh.data, mesh.tensor, mesh.pipeline);
}

}  // namespace

ParallelOptions parallel_options(const Scenario& scenario) {
  const MeshSettings& mesh = scenario.strategy.mesh;
  ParallelOptions options{.micro_batches = mesh.micro_batches, .batch = scenario.workload.batch};
  if (const auto axis = strategy_info(scenario.strategy.name).division->axis) {
    options.*axis = device_count(scenario);
    return options;
  }
  options.data = mesh.data;
  options.tensor = mesh.tensor;
  options.pipeline = mesh.pipeline;
  return options;
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
  return sizes_are_given ? scenario.strategy.mesh.tensor * scenario.strategy.mesh.pipeline : 1;
}

std::optional<ParallelProblem> parallel_problem(const Scenario& scenario) {
  const StrategyInfo& strategy = strategy_info(scenario.strategy.name);
  if (!strategy.division) return std::nullopt;
  const auto* mlp = std::get_if<MlpSettings>(&scenario.workload.kind);
  if (!mlp && !strategy.division->gathers_layers)
    return ParallelProblem{"workload.kind", fmt::format("strategy '{}' trains workloads of kind 'mlp'", strategy.name)};
  const auto* layers = std::get_if<LayersSettings>(&scenario.workload.kind);
  if (layers && layers->parameter_dtype) {
    return ParallelProblem{"workload.parameter_dtype",
                           fmt::format("strategy '{}' keeps parameters in the workload's dtype", strategy.name)};
  }
  const ParallelOptions options = parallel_options(scenario);
  const auto needed = static_cast<std::int64_t>(options.data) * options.tensor * options.pipeline;
  if (needed != device_count(scenario)) {
    return ParallelProblem{"strategy", fmt::format("a mesh of {} needs {} devices, found {}",
                                                   mesh_text(scenario.strategy.mesh), needed, device_count(scenario))};
  }
  try {
    check_division(mlp ? linear_stack(*mlp) : LinearStack{.sizes = {1, 1}}, options);
  } catch (const ValueError& error) {
    return ParallelProblem{"strategy", error.what()};
  }
  return std::nullopt;
}

}  // namespace tandem
