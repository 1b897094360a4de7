#include "strategies/tower/variables.h"

#include <fmt/format.h>

#include "strategies/base/errors.h"
#include "strategies/tower/values.h"

namespace tandem::tower {

void MirroredVariable::check_tower_change() const {
  if (where() == Where::update) return;
  if (release_ == Release::v1_9) {
    throw RuntimeError(fmt::format("use DistributionStrategy.update() to modify the mirrored variable '{}'", name()));
  }
  if (where() == Where::replica && aggregation() == VariableAggregation::none) {
    throw ValueError(
        fmt::format("mirrored variable '{}' is changed in a tower: it needs an aggregation other than NONE", name()));
  }
}

Tensor MirroredVariable::change(Change change, const Value& value) {
  check_tower_change();
  if (where() != Where::cross_replica) return tandem::MirroredVariable::change(change, value);
  return tandem::MirroredVariable::change(change, in_device_order(devices(), value, true));
}

Tensor MirroredVariable::scatter(kernel::Scatter operation, const IndexedSlices& slices) {
  check_tower_change();
  return tandem::MirroredVariable::scatter(operation, slices);
}

bool TowerLocalVariable::is_sum_by_default() const {
  return where() == Where::cross_replica && aggregation() == VariableAggregation::none;
}

Tensor TowerLocalVariable::sum() {
  const Value::Parts values = component_values();
  if (values.size() == 1 && strategy().num_replicas_in_sync() == 1) return values.front().tensor();
  const Value parts = values.size() == 1 ? values.front() : Value::per_replica(values);
  const Value total = strategy().extended().implementation().all_reduce(ReduceOp::sum, parts, {});
  return (total.is_distributed() ? total.parts().front() : total).tensor();
}

Tensor TowerLocalVariable::value() {
  return is_sum_by_default() ? sum() : SyncOnReadVariable::value();
}

Tensor TowerLocalVariable::read() {
  return is_sum_by_default() ? sum() : SyncOnReadVariable::read();
}

Tensor TowerLocalVariable::change(Change change, const Value& value) {
  if (where() == Where::cross_replica && (change != Change::assign || release_ == Release::v1_9)) {
    throw RuntimeError(fmt::format("tower-local variable '{}' may only be changed in a tower context", name()));
  }
  return SyncOnReadVariable::change(change, value);
}

void check_trainable(const VariableSpec& spec) {
  if (spec.synchronization == VariableSynchronization::on_read && spec.trainable.value_or(false)) {
    throw ValueError(
        fmt::format("variable '{}' is ON_READ and trainable: sync-on-read variables cannot be", spec.name));
  }
}

std::shared_ptr<Variable> with_tower_rules(const std::shared_ptr<Variable>& variable, Release release) {
  const VariableSpec& spec = variable->spec();
  check_trainable(spec);
  if (variable->kind() == VariableKind::mirrored) {
    return std::make_shared<MirroredVariable>(variable->strategy(), spec, variable->components(), release);
  }
  if (variable->kind() == VariableKind::sync_on_read) {
    return std::make_shared<TowerLocalVariable>(variable->strategy(), spec, variable->components(), release);
  }
  return variable;
}

}  // namespace tandem::tower
