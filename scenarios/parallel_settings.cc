#include "scenarios/parallel_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "scenarios/job.h"
#include "strategies/base/errors.h"
#include "strategies/strategies.h"
#include "topologies/base/strict_yaml.h"

namespace tandem {
namespace {

constexpr std::array kNames{"fully_sharded", "mesh", "pipeline_parallel", "tensor_parallel"};
constexpr int kMostMicroBatches = 1 << 20;
constexpr int kMostDevices = 1 << 16;

int device_count(const Scenario& scenario) {
  return training_workers(scenario) * scenario.devices.per_worker;
}

std::string mesh_text(const MeshSettings& mesh) {
  return fmt::format("data {} x tensor {} x pipeline {}", mesh.data, mesh.tensor, mesh.pipeline);
}

}  // namespace

bool is_parallel(std::string_view strategy) {
  return std::find(kNames.begin(), kNames.end(), strategy) != kNames.end();
}

std::vector<std::string> all_strategy_names() {
  std::vector<std::string> names = strategy_names();
  names.insert(names.end(), kNames.begin(), kNames.end());
  std::sort(names.begin(), names.end());
  return names;
}

void read_mesh(const YamlReader& map, StrategySettings& strategy) {
  const std::string& name = strategy.name;
  const bool is_mesh = name == "mesh";
  const auto read = [&](const char* key, int most, bool is_used, int& value) {
    const YamlReader entry = map.optional(key);
    if (!entry) return;
    value = entry.integer(1, most, value);
    if (!is_used) entry.error(fmt::format("strategy '{}' does not use it", name));
  };
  read("micro_batches", kMostMicroBatches, is_mesh || name == "pipeline_parallel", strategy.mesh.micro_batches);
  read("data", kMostDevices, is_mesh, strategy.mesh.data);
  read("tensor", kMostDevices, is_mesh, strategy.mesh.tensor);
  read("pipeline", kMostDevices, is_mesh, strategy.mesh.pipeline);
  if (!is_parallel(name)) return;
  for (const char* key : {"cross_device_ops", "num_packs", "bytes_per_pack"}) {
    if (map.has(key)) map.optional(key).error(fmt::format("strategy '{}' does not use it", name));
  }
}

ParallelOptions parallel_options(const Scenario& scenario) {
  const MeshSettings& mesh = scenario.strategy.mesh;
  const std::string& name = scenario.strategy.name;
  ParallelOptions options{.micro_batches = mesh.micro_batches, .batch = scenario.workload.batch};
  if (name == "mesh") {
    options.data = mesh.data;
    options.tensor = mesh.tensor;
    options.pipeline = mesh.pipeline;
  } else {
    int& axis = name == "tensor_parallel"     ? options.tensor
                : name == "pipeline_parallel" ? options.pipeline
                                              : options.data;
    axis = device_count(scenario);
  }
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
  const MeshSettings& mesh = scenario.strategy.mesh;
  return scenario.strategy.name == "mesh" ? mesh.tensor * mesh.pipeline : 1;
}

std::optional<ParallelProblem> parallel_problem(const Scenario& scenario) {
  const std::string& name = scenario.strategy.name;
  if (!is_parallel(name)) return std::nullopt;
  const auto* mlp = std::get_if<MlpSettings>(&scenario.workload.kind);
  if (!mlp && name != "fully_sharded")
    return ParallelProblem{"workload.kind", fmt::format("strategy '{}' trains workloads of kind 'mlp'", name)};
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
