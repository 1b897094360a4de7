#include "strategies/strategy/strategy_extended.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/purpose.h"
#include "strategies/base/device_list.h"
#include "strategies/base/errors.h"
#include "strategies/cross_device/copies.h"
#include "strategies/strategy/own_change.h"
#include "strategies/strategy/regroup.h"
#include "strategies/strategy/replica_context.h"
#include "strategies/strategy/strategy.h"
#include "strategies/values/means.h"

namespace tandem {
namespace {

void check_pair(ReduceOp op, const ReducePair& pair) {
  const auto& [value, destinations] = pair;
  if (destinations.is_list()) throw AssertionError("reduce_to() takes one destination, not a list of devices");
  const bool is_mirrored_variable = value.is(ValueKind::variable) && value.variable()->kind() == VariableKind::mirrored;
  if (op == ReduceOp::sum && (value.is(ValueKind::mirrored) || is_mirrored_variable)) {
    throw AssertionError(
        "SUM of a mirrored value: it is equal on all replicas; use MEAN, or broadcast_to() for copies");
  }
}

// What is reduced for a value: the parts of a sync-on-read variable, and for a mean of integers their f64.
std::vector<ReducePair> operands_of(const StrategyExtended& extended, ReduceOp op,
                                    const std::vector<ReducePair>& pairs) {
  std::vector<ReducePair> operands;
  for (const ReducePair& pair : pairs) {
    check_pair(op, pair);
    const auto& [given, destinations] = pair;
    const bool is_variable = given.is(ValueKind::variable);  // which the reduction must not change
    const Value value = is_variable ? copy_of_tensors(opened_if_sync_on_read(given)) : given;
    operands.emplace_back(extended.num_replicas_in_sync() > 1 ? as_mean_operand(op, value) : value, destinations);
  }
  return operands;
}

}  // namespace

Value combine_updates(const Value::Parts& results, bool group) {
  return group ? regroup_mirrored(results) : regroup_ungrouped(results);
}

Value StrategyExtended::call_for_each_replica(const ReplicaFunction& function, const Value::Parts& arguments) {
  TANDEM_REQUIRE(function, "call_for_each_replica() of no function");
  require_cross_replica(strategy(), "call_for_each_replica()");
  const ModeGuard cross(Mode{.strategy = strategy_});
  return do_call_for_each_replica(function, arguments);
}

Value StrategyExtended::reduce_to(ReduceOp op, const Value& value, const Destinations& destinations,
                                  const CommunicationOptions& options) {
  require_cross_replica(strategy(), "reduce_to()");
  return map_structure(value, [&](const Value& leaf) {
    return batch_reduce_to(op, {{leaf, destinations}}, options).front();
  });
}

Value StrategyExtended::reduce_to(std::string_view op, const Value& value, const Destinations& destinations,
                                  const CommunicationOptions& options) {
  return reduce_to(reduce_op_from_name(op), value, destinations, options);
}

std::vector<Value> StrategyExtended::batch_reduce_to(ReduceOp op, const std::vector<ReducePair>& pairs,
                                                     const CommunicationOptions& options) {
  check_communication_options(options);
  require_cross_replica(strategy(), "batch_reduce_to()");
  const CallPurpose noted([&] { return fmt::format("reduce_to() by {}", name_of(op)); });
  std::vector<ReducePair> kept;
  for (const auto& [value, destinations] : operands_of(*this, op, pairs)) {
    // The only replica of a worker has a bare tensor; it is reduced in place with those of the other workers.
    const bool is_part = in_multi_worker_mode() && value.is(ValueKind::tensor);
    kept.emplace_back(is_part ? copy_of_tensors(Value::per_replica({value})).parts().front() : copy_of_tensors(value),
                      destinations);
  }
  return do_batch_reduce_to(op, kept, options).wait();
}

std::vector<Value> StrategyExtended::batch_reduce_to(std::string_view op, const std::vector<ReducePair>& pairs,
                                                     const CommunicationOptions& options) {
  return batch_reduce_to(reduce_op_from_name(op), pairs, options);
}

ReductionInFlight StrategyExtended::begin_batch_reduce_to(ReduceOp op, const std::vector<ReducePair>& pairs,
                                                          const CommunicationOptions& options) {
  check_communication_options(options);
  require_cross_replica(strategy(), "begin_batch_reduce_to()");
  const CallPurpose noted([&] { return fmt::format("reduce_to() by {}", name_of(op)); });
  return do_batch_reduce_to(op, operands_of(*this, op, pairs), options);
}

Value StrategyExtended::broadcast_to(const Value& value, const Destinations& destinations) {
  require_cross_replica(strategy(), "broadcast_to()");
  if (destinations.is_list() || destinations.is_empty()) {
    throw AssertionError("broadcast_to() takes one destination: a value, a variable or a device");
  }
  if (value.is(ValueKind::number)) return value;
  return copies_on(destinations.resolve(worker()), value.is_distributed() ? value.parts().front() : value);
}

Value StrategyExtended::update(const std::shared_ptr<Variable>& variable, const UpdateFunction& function,
                               const Value::Parts& arguments, bool group) {
  if (!variable) throw ValueError("update() of nothing: it takes a variable");
  TANDEM_REQUIRE(function, "update() with no function");
  const Mode* mode = current_mode();
  if (mode && mode->replica && mode->strategy == strategy_) {
    return mode->replica->merge_call(
        [&](Strategy&, const Value::Parts& merged) { return do_update(variable, function, merged, group); }, arguments,
        {"update()", {variable.get()}});
  }
  require_cross_replica(strategy(), "update()");
  const OwnChange noted(strategy(), "update()", *variable);
  const ModeGuard cross(Mode{.strategy = strategy_});
  return do_update(variable, function, arguments, group);
}

void StrategyExtended::replica_update(const std::shared_ptr<Variable>& variable, const UpdateFunction& function,
                                      const Value::Parts& arguments) {
  if (!variable) throw ValueError("replica_update() of nothing: it takes a variable");
  const Mode* mode = current_mode();
  if (!mode || !mode->replica || mode->strategy != strategy_) {
    throw RuntimeError("replica_update() is called in a replica context of its strategy; elsewhere it is update()");
  }
  if (variable->kind() != VariableKind::mirrored) {
    update(variable, function, arguments);
    return;
  }
  const int replica = mode->replica->local_replica_id();
  Value::Parts mine;
  for (const Value& argument : arguments) mine.push_back(select_replica(replica, argument));
  const ModeGuard own_component(Mode{.strategy = strategy_, .update_replica = replica});
  function(*variable, mine);
}

Value StrategyExtended::update_non_slot(const std::vector<Device*>& colocate_with, const NonSlotFunction& function,
                                        const Value::Parts& arguments, bool group) {
  TANDEM_REQUIRE(function, "update_non_slot() of no function");
  checked_devices(colocate_with, "update_non_slot()");
  const Mode* mode = current_mode();
  if (mode && mode->replica && mode->strategy == strategy_) {
    return mode->replica->merge_call(
        [&](Strategy&, const Value::Parts& merged) {
          return do_update_non_slot(colocate_with, function, merged, group);
        },
        arguments, {"update_non_slot()"});
  }
  require_cross_replica(strategy(), "update_non_slot()");
  const ModeGuard cross(Mode{.strategy = strategy_});
  return do_update_non_slot(colocate_with, function, arguments, group);
}

std::vector<Device*> StrategyExtended::non_slot_devices(const std::vector<std::shared_ptr<Variable>>& /*variables*/) {
  return parameter_devices();
}

std::unique_ptr<VariableCreatorScope> StrategyExtended::colocate_vars_with(const std::shared_ptr<Variable>& variable) {
  if (&get_strategy() != strategy_) {
    throw RuntimeError(
        fmt::format("colocate_vars_with() of strategy '{}': need to be inside scope of it", strategy().name()));
  }
  if (!variable || !variable_created_in_scope(*variable)) {
    throw ValueError("colocate_vars_with() takes a variable that was created under the same strategy");
  }
  return std::make_unique<VariableCreatorScope>([variable](const NextCreator& next, const VariableSpec& spec) {
    VariableSpec colocated = spec;
    colocated.colocate_with = variable;
    return next(colocated);
  });
}

Value StrategyExtended::value_container(const Value& value) const {
  if (!value.is(ValueKind::tensor)) return value;
  for (const std::weak_ptr<Variable>& weak : variables_) {
    std::shared_ptr<Variable> variable = weak.lock();
    if (!variable) continue;
    const std::vector<Tensor>& components = variable->components();
    if (std::any_of(components.begin(), components.end(), [&](const Tensor& c) { return c.is_same(value.tensor()); })) {
      return variable;
    }
  }
  return value;
}

void StrategyExtended::note_variable(const std::shared_ptr<Variable>& variable) {
  std::erase_if(variables_, [](const std::weak_ptr<Variable>& old) { return old.expired(); });
  variables_.push_back(variable);
}

bool StrategyExtended::variable_created_in_scope(const Variable& variable) const {
  return &variable.strategy() == strategy_;
}

Scope StrategyExtended::do_scope() {
  return std::make_unique<StrategyScope>(strategy(), true);
}

}  // namespace tandem
