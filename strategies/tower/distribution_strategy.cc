#include "strategies/tower/distribution_strategy.h"

#include <fmt/format.h>

#include <algorithm>

#include "strategies/base/default_strategy.h"
#include "strategies/base/errors.h"
#include "strategies/base/replica_context.h"
#include "strategies/input/input_workers.h"
#include "strategies/mirrored.h"
#include "strategies/parameter_server.h"
#include "strategies/tower/values.h"
#include "strategies/values/regroup.h"

namespace tandem::tower {
namespace {

TowerStrategy::Settings settings_of(const Strategy& strategy) {
  const auto* tower = dynamic_cast<const TowerStrategy*>(&strategy);
  return tower ? tower->settings() : TowerStrategy::Settings{};
}

bool is_stored(const Strategy& strategy) {
  return dynamic_cast<const StoredExtended*>(&strategy.extended()) != nullptr;
}

// The list of the components' results at every leaf.
Value lists_of(const Value::Parts& results) {
  const Value& first = results.front();
  if (!first.is_nest()) return Value::list(results);
  const auto gathered = [&](const auto& part_of) {
    Value::Parts same;
    for (const Value& result : results) same.push_back(part_of(result));
    return lists_of(same);
  };
  if (first.is(ValueKind::map)) {
    Value::Fields fields;
    for (const auto& field : first.fields()) {
      const std::string& name = field.first;
      fields.emplace(name, gathered([&name](const Value& result) { return result.fields().at(name); }));
    }
    return Value::map(std::move(fields), first.type_name());
  }
  Value::Parts parts;
  for (std::size_t i = 0; i < first.parts().size(); ++i) {
    parts.push_back(gathered([i](const Value& result) { return result.parts().at(i); }));
  }
  return first.is(ValueKind::list) ? Value::list(std::move(parts)) : Value::tuple(std::move(parts));
}

// As 1.x opens arguments of updates of stored variables: there is one place, so there can be one part.
Value single_part(const Value& value) {
  return map_structure(value, [](const Value& leaf) {
    if (leaf.is(ValueKind::per_replica)) throw ValueError("update() of a stored variable with a value per device");
    if (leaf.is(ValueKind::mirrored) && leaf.parts().size() != 1) {
      throw ValueError(fmt::format("update() of a stored variable with a value of {} parts", leaf.parts().size()));
    }
    return leaf.is(ValueKind::mirrored) ? leaf.parts().front() : leaf;
  });
}

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

Value DistributionStrategy::update(const Value& variable, const UpdateFunction& function, const Value::Parts& arguments,
                                   bool grouped) const {
  require_cross_tower_context(*strategy_, "update()");
  const bool is_variable = variable.is(ValueKind::variable);
  if (!is_variable && is_stored(*strategy_)) throw ValueError("update() takes a variable");
  if (!is_variable) throw AssertionError(fmt::format("update() of a {}, not a variable", name_of(variable.kind())));
  const std::shared_ptr<Variable>& target = variable.variable();
  const bool is_distributed = target->kind() == VariableKind::mirrored || target->kind() == VariableKind::sync_on_read;
  if (!is_distributed && !is_direct() && !is_stored(*strategy_)) {
    throw AssertionError(fmt::format("update() of '{}', which is no distributed variable", target->name()));
  }
  if (settings_of(*strategy_).release == Release::v1_9 && target->kind() == VariableKind::sync_on_read) {
    throw AssertionError(
        fmt::format("update() of tower-local variable '{}': 1.9 updates mirrored ones", target->name()));
  }
  Value::Parts by_component;
  for (const Value& argument : arguments) {
    if (is_stored(*strategy_)) by_component.push_back(single_part(argument));
    if (is_distributed) by_component.push_back(in_device_order(target->devices(), argument, true));
    if (!is_stored(*strategy_) && !is_distributed) by_component.push_back(argument);
  }
  Value::Parts results;
  const auto recorded = [&](Variable& component, const Value::Parts& parts) {
    results.push_back(function(component, parts));
    return results.back();
  };
  const Value together = strategy_->extended().update(target, recorded, by_component);
  return grouped ? together : lists_of(results);
}

Value DistributionStrategy::update_non_slot(const std::vector<Device*>& colocate_with, const NonSlotFunction& function,
                                            const Value::Parts& arguments, bool grouped) const {
  require_cross_tower_context(*strategy_, "update_non_slot()");
  Value::Parts by_device;
  for (const Value& argument : arguments) {
    by_device.push_back(is_direct() ? argument : in_device_order(colocate_with, argument, true));
  }
  Value::Parts results;
  const auto recorded = [&](const Value::Parts& parts) {
    results.push_back(function(parts));
    return results.back();
  };
  const Value together = strategy_->extended().update_non_slot(colocate_with, recorded, by_device);
  return grouped ? together : lists_of(results);
}

std::vector<Device*> DistributionStrategy::non_slot_devices(
    const std::vector<std::shared_ptr<Variable>>& variables) const {
  return strategy_->extended().non_slot_devices(variables);
}

std::unique_ptr<VariableCreatorScope> DistributionStrategy::colocate_vars_with(
    const std::shared_ptr<Variable>& variable) const {
  require_scope(*strategy_, "colocate_vars_with()");
  return strategy_->extended().colocate_vars_with(variable);
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

InputWorkers DistributionStrategy::input_workers() const {
  InputWorkers workers = strategy_->extended().implementation().input_workers();
  workers.options.experimental_fetch_to_device = settings_of(*strategy_).prefetch_on_device;
  return workers;
}

DistributedDatasetV1 DistributionStrategy::distribute_dataset(const DatasetFunctionV1& function) const {
  return distribute_dataset_v1(function, input_workers(), settings_of(*strategy_).auto_shard_dataset);
}

DistributedIteratorV1 DistributionStrategy::make_input_fn_iterator(const InputFunction& function,
                                                                   InputReplicationMode mode) const {
  return tandem::make_input_fn_iterator(function, input_workers(), mode);
}

Value DistributionStrategy::worker_device_index() const {
  require_cross_tower_context(*strategy_, "worker_device_index()");
  const std::size_t count = worker_devices().size();
  if (is_direct()) return Value::literal(0);
  Value::Parts indices;
  for (std::size_t i = 0; i < count; ++i) indices.emplace_back(static_cast<double>(i));
  return Value::per_replica(std::move(indices));
}

}  // namespace tandem::tower
