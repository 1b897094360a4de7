#include "strategies/tower/distribution_strategy.h"

#include <fmt/format.h>

#include <algorithm>

#include "strategies/base/errors.h"
#include "strategies/input/input_workers.h"
#include "strategies/strategy/default_strategy.h"
#include "strategies/strategy/replica_context.h"
#include "strategies/tower/tower_strategy.h"
#include "strategies/tower/values.h"
#include "strategies/types/one_device.h"
#include "strategies/types/stored_extended.h"

namespace tandem::tower {
namespace {

void flatten(const Value& value, Value::Parts& flat) {
  if (value.is(ValueKind::map)) {
    for (const auto& [name, part] : value.fields()) flatten(part, flat);
  } else if (value.is_nest() || value.is_distributed()) {
    for (const Value& part : value.parts()) flatten(part, flat);
  } else {
    flat.push_back(value);
  }
}

}  // namespace

TowerStrategy::Settings settings_of(const Strategy& strategy) {
  const auto* tower = dynamic_cast<const TowerStrategy*>(&strategy);
  return tower ? tower->settings() : TowerStrategy::Settings{};
}

bool is_stored(const Strategy& strategy) {
  return dynamic_cast<const StoredExtended*>(&strategy.extended()) != nullptr;
}

void require_cross_tower_context(const Strategy& strategy, std::string_view call) {
  const Mode* mode = current_mode();
  if (mode && mode->strategy == &strategy && !mode->replica) return;
  const Strategy& current = get_strategy();
  if (&current == &strategy) {
    throw RuntimeError(fmt::format("{} requires cross-tower context; use get_tower_context().merge_call()", call));
  }
  if (&current == &default_strategy()) {
    throw RuntimeError(fmt::format("{}: need to be inside scope of strategy '{}'", call, strategy.name()));
  }
  throw RuntimeError(fmt::format("{} of strategy '{}' inside a context of '{}': mixing different strategies", call,
                                 strategy.name(), current.name()));
}

void require_scope(const Strategy& strategy, std::string_view call) {
  const Strategy& current = get_strategy();
  if (&current == &strategy) return;
  const char* why = &current == &default_strategy() ? "need to be inside scope" : "mixing different strategies";
  throw RuntimeError(fmt::format("{} of strategy '{}': {}", call, strategy.name(), why));
}

bool DistributionStrategy::is_direct() const {
  return strategy_ == &default_strategy() || dynamic_cast<const tandem::OneDeviceStrategy*>(strategy_) != nullptr;
}

StrategyExtended& DistributionStrategy::with_roles(std::string_view name) const {
  if (is_direct()) throw NotImplementedError(fmt::format("strategy '{}' has no {}", strategy_->name(), name));
  return strategy_->extended();
}

void DistributionStrategy::configure(const ClusterSpec& /*cluster*/, const ClusterTask& /*task*/) {}

void DistributionStrategy::become(std::shared_ptr<Strategy> strategy) {
  strategy_ = strategy.get();
  owner_ = std::move(strategy);
}

Scope DistributionStrategy::scope() const {
  if (strategy_ == &default_strategy() && has_strategy()) {
    throw RuntimeError("scope of the default strategy inside another one: mixing different strategies");
  }
  return strategy_->scope();
}

std::shared_ptr<Variable> DistributionStrategy::create_variable(const VariableSpec& spec) const {
  check_trainable(spec);
  return strategy_->create_variable(spec);
}

Value DistributionStrategy::call_for_each_tower(const TowerFunction& function, const Value::Parts& arguments,
                                                bool /*run_concurrently*/) const {
  require_cross_tower_context(*strategy_, "call_for_each_tower()");
  Value::Parts by_tower;
  for (const Value& argument : arguments) {
    by_tower.push_back(is_direct() ? argument : in_device_order(worker_devices(), argument));
  }
  return strategy_->extended().call_for_each_replica(function, by_tower);
}

std::unique_ptr<VariableCreatorScope> DistributionStrategy::tower_local_var_scope(std::string_view method) const {
  require_scope(*strategy_, "tower_local_var_scope()");
  if (method != "sum" && method != "mean") {
    throw AssertionError(fmt::format("tower-local variables are combined by \"sum\" or \"mean\", not \"{}\"", method));
  }
  const auto aggregation = method == "sum" ? VariableAggregation::sum : VariableAggregation::mean;
  return std::make_unique<VariableCreatorScope>([aggregation](const NextCreator& next, const VariableSpec& spec) {
    VariableSpec local = spec;
    local.synchronization = VariableSynchronization::on_read;
    local.aggregation = aggregation;
    local.trainable = false;
    return next(local);
  });
}

Value::Parts DistributionStrategy::unwrap(const Value& value) const {
  return strategy_ == &default_strategy() ? Value::Parts{value} : unwrapped(worker_devices(), value);
}

Value DistributionStrategy::group(const Value& value) const {
  Value::Parts flat;
  for (const Value& part : unwrap(value)) flatten(part, flat);
  return flat.size() == 1 ? flat.front() : Value::list(std::move(flat));
}

Value DistributionStrategy::map(const Value::Parts& elements, const MapFunction& function,
                                const Value::Parts& arguments) const {
  require_cross_tower_context(*strategy_, "map()");
  if (strategy_ == &default_strategy()) throw NotImplementedError("the default strategy does not map");
  const std::vector<Device*>& devices = worker_devices();
  std::vector<Value::Parts> results(devices.size());
  for (std::size_t k = 0; k < elements.size(); ++k) {
    Device& device = *devices[k % devices.size()];
    Value::Parts own;
    for (const Value& argument : arguments) {
      own.push_back(is_direct() ? argument : select_device_mirrored(device.id().text(), argument));
    }
    results[k % devices.size()].push_back(function(elements[k], device, own));
  }
  if (is_direct()) return Value::list(results.front());
  Value::Parts lists;
  for (Value::Parts& list : results) lists.push_back(Value::list(std::move(list)));
  return Value::per_replica(std::move(lists));
}

std::vector<InputWorkers> DistributionStrategy::input_workers() const {
  InputWorkers all = strategy_->extended().implementation().input_workers();
  all.options.experimental_fetch_to_device = settings_of(*strategy_).prefetch_on_device;
  std::vector<std::vector<Device*>> by_worker;
  for (Device* device : all.devices) {
    const auto same = [device](const std::vector<Device*>& group) {
      return group.front()->worker() == device->worker();
    };
    const auto found = std::find_if(by_worker.begin(), by_worker.end(), same);
    (found == by_worker.end() ? by_worker.emplace_back() : *found).push_back(device);
  }
  if (by_worker.size() == 1) return {all};
  std::vector<InputWorkers> workers(by_worker.size(), all);
  for (std::size_t w = 0; w < workers.size(); ++w) {
    const DeviceId& id = by_worker[w].front()->id();
    workers[w].devices = by_worker[w];
    workers[w].host = &all.worker.device({.job = id.job, .task = id.task, .type = DeviceType::cpu, .index = 0});
    workers[w].num_workers = static_cast<int>(workers.size());
    workers[w].pipeline_id = static_cast<int>(w);
  }
  return workers;
}

DistributedDatasetV1 DistributionStrategy::distribute_dataset(const DatasetFunctionV1& function) const {
  return distribute_dataset_v1(function, input_workers(), settings_of(*strategy_).auto_shard_dataset);
}

DistributedDatasetV1 DistributionStrategy::distribute_dataset(const Dataset& dataset) const {
  return distribute_dataset([&dataset] { return std::optional(dataset); });
}

DistributedIteratorV1 DistributionStrategy::make_input_fn_iterator(const InputFunction& function,
                                                                   InputReplicationMode mode) const {
  return tandem::make_input_fn_iterator(function, input_workers(), mode);
}

Value DistributionStrategy::worker_device_index() const {
  require_cross_tower_context(*strategy_, "worker_device_index()");
  const std::size_t count = worker_devices().size();
  if (is_direct()) return Value::integer(0);
  Value::Parts indices;
  for (std::size_t i = 0; i < count; ++i) indices.emplace_back(i);
  return Value::per_replica(std::move(indices));
}

}  // namespace tandem::tower
