#include "strategies/strategies.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <set>

#include "strategies/base/errors.h"
#include "strategies/cross_device/make_cross_device_ops.h"
#include "strategies/parallel/mesh_division.h"
#include "strategies/parallel/sharded_division.h"
#include "strategies/servers/parameter_server.h"
#include "strategies/types/central_storage.h"
#include "strategies/types/mirrored.h"
#include "strategies/types/multi_worker_mirrored.h"
#include "strategies/types/one_device.h"

namespace tandem {
namespace {

constexpr std::string_view kDefault = "mirrored";

std::vector<Device*> devices_of(Worker& worker, const StrategyOptions& options) {
  if (!options.devices.empty()) return options.devices;
  return {worker.devices().begin(), worker.devices().end()};
}

Device& only_device(Worker& worker, const StrategyOptions& options) {
  const std::vector<Device*> devices = devices_of(worker, options);
  if (devices.empty()) throw ValueError("strategy 'one_device' needs a device, and this worker computes on none");
  return *devices.front();
}

std::vector<StrategyInfo> replicating_strategies() {
  return {
      {.name = "one_device",
       .one_device = true,
       .packs_tensors = false,
       .compared_as = ComparedRuns::replicas,
       .make =
           [](Worker& worker, const StrategyOptions& options) {
             return std::make_unique<OneDeviceStrategy>(worker, only_device(worker, options));
           }},
      {.name = "mirrored",
       .cross_device_ops = cross_device_ops_names(),
       .compared_as = ComparedRuns::replicas,
       .make =
           [](Worker& worker, const StrategyOptions& options) {
             return std::make_unique<MirroredStrategy>(worker, devices_of(worker, options), options.cross_device_ops,
                                                       options.packing);
           }},
      {.name = "multi_worker_mirrored",
       .several_workers = true,
       .cross_device_ops = {"collective"},
       .compared_as = ComparedRuns::replicas,
       .make =
           [](Worker& worker, const StrategyOptions& options) {
             return std::make_unique<MultiWorkerMirroredStrategy>(worker,
                                                                  MultiWorkerOptions{.packing = options.packing});
           }},
      {.name = "central_storage",
       .packs_tensors = false,
       .compared_as = ComparedRuns::central,
       .make =
           [](Worker& worker, const StrategyOptions& options) {
             return std::make_unique<CentralStorageStrategy>(worker, options.devices);
           }},
      {.name = "parameter_server",
       .several_workers = true,
       .parameter_servers = ServerUse::required,
       .packs_tensors = false,
       .compared_as = ComparedRuns::servers,
       .make =
           [](Worker& worker, const StrategyOptions& options) {
             return std::make_unique<ParameterServerStrategy>(
                 worker, options.devices,
                 ParameterServerOptions{.placement = options.placement, .updates = options.updates, .partitioner = {}});
           }},
  };
}

StrategyInfo dividing(std::string name, ModelDivision division, ComparedRuns compared_as) {
  return {.name = std::move(name),
          .several_workers = true,
          .packs_tensors = false,
          .compared_as = compared_as,
          .division = std::move(division)};
}

std::vector<StrategyInfo> dividing_strategies() {
  const auto mesh = std::make_shared<const MeshDivision>();
  return {
      dividing("fully_sharded", {.how = std::make_shared<const ShardedDivision>(), .axis = &ParallelOptions::data},
               ComparedRuns::sharded),
      dividing("tensor_parallel", {.how = mesh, .axis = &ParallelOptions::tensor}, ComparedRuns::mesh),
      dividing("pipeline_parallel", {.how = mesh, .axis = &ParallelOptions::pipeline, .micro_batches = true},
               ComparedRuns::mesh),
      dividing("mesh", {.how = mesh, .micro_batches = true}, ComparedRuns::mesh),
  };
}

using StrategyTable = std::map<std::string, StrategyInfo, std::less<>>;

StrategyTable& table() {
  static StrategyTable strategies = [] {
    StrategyTable known;
    for (const auto& list : {replicating_strategies(), dividing_strategies()}) {
      for (const StrategyInfo& info : list) known.emplace(info.name, info);
    }
    return known;
  }();
  return strategies;
}

}  // namespace

void register_strategy(StrategyInfo info) {
  if (info.name.empty()) throw ValueError("a strategy is registered without a name");
  const bool divides = info.division && info.division->how;
  if ((info.make != nullptr) == divides) {
    throw ValueError(fmt::format("strategy '{}' is registered with {}, must have one of `make` and `division.how`",
                                 info.name, divides ? "two ways to train" : "no way to train"));
  }
  if (find_strategy(info.name) != nullptr) throw ValueError(fmt::format("strategy '{}' exists already", info.name));
  std::set<std::string> names;
  for (const StrategyKey& key : info.keys) {
    std::string problem = problem_of(key);
    if (!names.insert(key.name).second) problem = fmt::format("key '{}' is declared twice", key.name);
    if (!problem.empty()) throw ValueError(fmt::format("strategy '{}': {}", info.name, problem));
  }
  info.is_registered = true;
  std::string name = info.name;
  table().emplace(std::move(name), std::move(info));
}

const StrategyInfo* find_strategy(std::string_view name) {
  const auto found = table().find(name);
  return found == table().end() ? nullptr : &found->second;
}

const StrategyInfo& strategy_info(std::string_view name) {
  if (const StrategyInfo* info = find_strategy(name)) return *info;
  const std::vector<std::string> known = strategy_names();
  std::string message = fmt::format("unknown strategy '{}' (known: {})", name, fmt::join(known, ", "));
  if (const std::string near = nearest_name(name, known); !near.empty())
    message += fmt::format("; did you mean '{}'?", near);
  throw ValueError(message);
}

std::unique_ptr<Strategy> make_strategy(std::string_view name, Worker& worker, const StrategyOptions& options) {
  const StrategyInfo& info = strategy_info(name);
  if (!info.make) {
    throw ValueError(fmt::format("strategy '{}' divides the model: StrategyInfo::division trains it instead", name));
  }
  StrategyOptions whole = options;
  whole.own = with_usual_values(info.name, info.keys, options.own);
  return info.make(worker, whole);
}

std::vector<std::string> strategy_names() {
  std::vector<std::string> names;
  for (const auto& [name, info] : table()) names.push_back(name);
  return names;
}

std::string_view default_strategy_name() {
  return kDefault;
}

}  // namespace tandem
