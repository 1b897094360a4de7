#include "strategies/variables/replicated_variables.h"

#include <fmt/format.h>

#include <cmath>

#include "engine/purpose.h"
#include "strategies/base/errors.h"
#include "strategies/cross_device/host_values.h"
#include "strategies/strategy/regroup.h"
#include "strategies/strategy/strategy.h"
#include "strategies/variables/components.h"

namespace tandem {

Tensor MirroredVariable::change(Change change, const Value& value) {
  if (where() == Where::replica && aggregation() == VariableAggregation::none) {
    change_component(change, current_component(), select_replica(current_component(), value));
    return this->value();
  }
  return Variable::change(change, value);
}

Tensor MirroredVariable::scatter(kernel::Scatter operation, const IndexedSlices& slices) {
  if (where() == Where::replica && aggregation() == VariableAggregation::none) {
    scatter_component(operation, current_component(), slices);
    return value();
  }
  return Variable::scatter(operation, slices);
}

Tensor SyncOnReadVariable::change(Change change, const Value& value) {
  if (where() != Where::cross_replica) {
    change_component(change, current_component(), select_replica(current_component(), value));
    return changed_component();
  }
  if (aggregation() == VariableAggregation::sum) {
    if (change != Change::assign) {
      throw ValueError(
          fmt::format("SyncOnReadVariable does not support assign_add and assign_sub in cross-replica "
                      "context when it aggregates by SUM: variable '{}'",
                      name()));
    }
    change_all(change, share_of(value));
  } else {
    change_all(change, value);
  }
  return aggregation() == VariableAggregation::none ? component_value(0) : this->value();
}

// A per-replica value says what each component gets, so it is not divided.
Value SyncOnReadVariable::share_of(const Value& value) {
  const auto n = static_cast<double>(strategy().num_replicas_in_sync());
  const bool is_whole = dtype() == DType::i32 || dtype() == DType::i64 || dtype() == DType::u8;
  if (value.is(ValueKind::number)) return is_whole ? std::trunc(value.number() / n) : value.number() / n;
  if (value.is(ValueKind::per_replica)) return value;
  if (value.is(ValueKind::mirrored)) {
    Value::Parts shares;
    for (const Value& part : value.parts()) shares.push_back(share_of(part));
    return Value::mirrored(std::move(shares));
  }
  const Tensor whole = value.is(ValueKind::variable) ? value.variable()->value() : value.tensor();
  Device& device = whole.device();
  Tensor share = device.allocate(whole.dtype(), whole.shape());
  if (is_whole) {  // integers divide with truncation
    device.compute_stream().launch(op::fill(share, n));
    device.compute_stream().launch(op::elementwise(kernel::Binary::divide, share, whole, share));
  } else {
    device.compute_stream().launch(op::scale_add(share, whole, 1 / n, 0));
  }
  return share;
}

Tensor SyncOnReadVariable::aggregate() {
  const CallPurpose noted([&] { return fmt::format("read() of variable '{}'", canonical_name(name())); });
  if (aggregation() == VariableAggregation::only_first_replica) return component_value(0);
  const Value::Parts values = component_values();
  const Value total = strategy().extended().implementation().all_reduce(
      reduce_op_from_aggregation(aggregation()), values.size() == 1 ? values.front() : Value::per_replica(values), {});
  return (total.is_distributed() ? total.parts().front() : total).tensor();
}

Tensor SyncOnReadVariable::value() {
  if (where() != Where::cross_replica) return component_value(current_component());
  if (aggregation() == VariableAggregation::none) {
    throw ValueError(fmt::format(
        "variable '{}' is read in cross-replica context, but its aggregation is VariableAggregation.NONE", name()));
  }
  return aggregate();
}

Tensor SyncOnReadVariable::scatter(kernel::Scatter /*operation*/, const IndexedSlices& /*slices*/) {
  throw NotImplementedError(fmt::format("variable '{}' is sync on read: it has no scatter operations", name()));
}

Tensor SyncOnReadVariable::saved_value() {
  const CallPurpose noted([&] { return fmt::format("a checkpoint of variable '{}'", canonical_name(name())); });
  return copied_to_host(strategy().extended().worker(),
                        aggregation() == VariableAggregation::none ? component_value(0) : aggregate());
}

void SyncOnReadVariable::restore(const Tensor& saved) {
  change_all(Change::assign, aggregation() == VariableAggregation::sum ? share_of(Value(saved)) : Value(saved));
}

Tensor PlainVariable::change(Change change, const Value& value) {
  change_component(change, 0, select_replica(0, value));
  return changed_component();
}

void PlainVariable::restore(const Tensor& saved) {
  change_component(Change::assign, 0, Value(saved));
}

Tensor PlainVariable::scatter(kernel::Scatter operation, const IndexedSlices& slices) {
  scatter_component(operation, 0, slices);
  return changed_component();
}

}  // namespace tandem
