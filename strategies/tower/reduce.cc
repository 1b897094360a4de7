// The reducing half of DistributionStrategy.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "strategies/base/errors.h"
#include "strategies/cross_device/copies.h"
#include "strategies/strategy/default_strategy.h"
#include "strategies/tower/distribution_strategy.h"
#include "strategies/tower/tower_strategy.h"
#include "strategies/tower/values.h"
#include "strategies/values/means.h"

namespace tandem::tower {
namespace {

VariableAggregation aggregation_of(std::string_view method) {
  if (method == "sum") return VariableAggregation::sum;
  if (method == "mean") return VariableAggregation::mean;
  throw AssertionError(fmt::format("reductions are \"sum\" or \"mean\", not \"{}\"", method));
}

void check_aggregation(VariableAggregation aggregation) {
  if (aggregation == VariableAggregation::none) {
    throw AssertionError("reductions are SUM, MEAN or ONLY_FIRST_TOWER, not NONE");
  }
}

Value as_mirrored(const Value& value) {
  return value.is_distributed() ? value : Value::mirrored({value});
}

Value copied(const std::vector<Device*>& devices, const Value& value) {
  if (devices.empty()) throw ValueError("a reduction or broadcast needs a destination");
  return copies_on(devices, value);
}

bool are_integers(const Value::Parts& parts) {
  return std::all_of(parts.begin(), parts.end(),
                     [](const Value& part) { return part.is(ValueKind::number) && part.is_integer(); });
}

// Makes an integer from a number that was computed from integers. Rounds a mean down, as TensorFlow 1 does.
Value as_integer(const Value& number) {
  return Value::integer(static_cast<std::int64_t>(std::floor(number.number())));
}

// Adds up the results of map() on one device; returns nothing if there are none.
Value sum_of(const Value::Parts& values) {
  if (values.empty()) return {};
  if (values.front().is(ValueKind::number)) {
    double sum = 0;
    for (const Value& value : values) sum += value.number();
    return are_integers(values) ? as_integer(sum) : Value(sum);
  }
  const Tensor& first = values.front().tensor();
  Stream& stream = first.device().compute_stream();
  Tensor sum = first.device().allocate(first.dtype(), first.shape());
  stream.copy(sum, first);
  for (std::size_t i = 1; i < values.size(); ++i)
    stream.launch(op::scale_add(sum, copy_on(sum.device(), values[i].tensor()), 1, 1));
  return sum;
}

Value divided(const Value& sum, double count) {
  if (sum.is(ValueKind::number)) {
    const Value quotient = sum.number() / count;
    return sum.is_integer() ? as_integer(quotient) : quotient;
  }
  const Tensor tensor = as_mean_operand(ReduceOp::mean, sum).tensor();
  Tensor quotient = tensor.device().allocate(tensor.dtype(), tensor.shape());
  tensor.device().compute_stream().launch(op::scale_add(quotient, tensor, 1 / count, 0));
  return quotient;
}

}  // namespace

bool DistributionStrategy::spans_workers() const {
  return num_towers() > static_cast<int>(worker_devices().size());
}

Value DistributionStrategy::reduce(VariableAggregation aggregation, const Value& value,
                                   const Destinations& destinations) const {
  require_cross_tower_context(*strategy_, "reduce()");
  check_aggregation(aggregation);
  return reduced(aggregation, value, destinations);
}

Value DistributionStrategy::reduce(std::string_view method, const Value& value,
                                   const Destinations& destinations) const {
  require_cross_tower_context(*strategy_, "reduce()");
  const VariableAggregation aggregation = aggregation_of(method);
  const Value parts = opened_if_sync_on_read(value);
  if (!is_direct() && !parts.is(ValueKind::per_replica)) {
    if (worker_devices().size() != 1) {
      throw AssertionError(fmt::format("{} is reduced that is no value per device", with_article(value.kind())));
    }
    return reduced(aggregation, parts, destinations.is_empty() ? Destinations(worker_devices()) : destinations);
  }
  return reduced(aggregation, parts, destinations);
}

std::vector<Value> DistributionStrategy::batch_reduce(VariableAggregation aggregation,
                                                      const std::vector<ReducePair>& pairs) const {
  require_cross_tower_context(*strategy_, "batch_reduce()");
  check_aggregation(aggregation);
  std::vector<Value> results(pairs.size());
  std::vector<ReducePair> together;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const Value value = opened_if_sync_on_read(pairs[i].first);
    const bool is_dense = value.is(ValueKind::per_replica) && value.parts().front().is(ValueKind::tensor);
    if (is_direct() || !is_dense || aggregation == kOnlyFirstTower) {
      results[i] = reduced(aggregation, value, pairs[i].second);
    } else {
      together.emplace_back(value, Destinations(pairs[i].second.resolve(strategy_->extended().worker())));
      places.push_back(i);
    }
  }
  if (together.empty()) return results;
  const std::vector<Value> sums =
      strategy_->extended().batch_reduce_to(reduce_op_from_aggregation(aggregation), together);
  for (std::size_t i = 0; i < places.size(); ++i) results[places[i]] = as_mirrored(sums[i]);
  return results;
}

std::vector<Value> DistributionStrategy::batch_reduce(std::string_view method,
                                                      const std::vector<ReducePair>& pairs) const {
  require_cross_tower_context(*strategy_, "batch_reduce()");
  return batch_reduce(aggregation_of(method), pairs);
}

Value DistributionStrategy::broadcast(const Value& value, const Destinations& destinations) const {
  require_cross_tower_context(*strategy_, "broadcast()");
  if (strategy_ == &default_strategy() && !destinations.is_empty()) {
    throw NotImplementedError("the default strategy broadcasts to no destinations");
  }
  if (is_direct()) return value;
  return broadcast_first(
      value, destinations.is_empty() ? worker_devices() : destinations.resolve(strategy_->extended().worker()));
}

Value DistributionStrategy::broadcast_first(const Value& value, const std::vector<Device*>& on) const {
  return as_mirrored(copied(on, value.is_distributed() ? value.parts().front() : value));
}

Value DistributionStrategy::reduced(VariableAggregation aggregation, const Value& given,
                                    const Destinations& destinations) const {
  if (is_direct()) return reduced_directly(aggregation, given);
  Value value = opened_if_sync_on_read(given);
  if (value.is(ValueKind::mirrored) || value.is(ValueKind::variable)) {
    throw AssertionError("a mirrored value is reduced, which is equal on all devices");
  }
  const bool is_of_value = destinations.is_empty() && !devices_of(value).empty();
  const auto on = [&] {
    return is_of_value ? devices_of(value) : destinations.resolve(strategy_->extended().worker());
  };
  if (!value.is(ValueKind::per_replica)) {
    if (value.is(ValueKind::number) && value.number() == 0) return value;
    if (aggregation != VariableAggregation::sum && !spans_workers()) return value;
    return reduced_shared(aggregation, value, on());
  }
  if (aggregation == kOnlyFirstTower) {
    const Value first = select_device(worker_devices().front()->id().text(), value);
    return first.is(ValueKind::number) ? first : broadcast_first(first, on());
  }
  return reduced_parts(reduce_op_from_aggregation(aggregation), value, on());
}

Value DistributionStrategy::reduced_directly(VariableAggregation aggregation, const Value& value) const {
  if (!value.is(ValueKind::list)) return value;
  if (aggregation == kOnlyFirstTower) throw AssertionError("what map() gave is reduced by SUM or MEAN");
  const Value sum = sum_of(value.parts());
  if (sum.is(ValueKind::none)) throw ValueError("a reduction of no values");
  return aggregation == VariableAggregation::sum ? sum : divided(sum, static_cast<double>(value.parts().size()));
}

// Reduces a value that is one object in all towers of this worker.
Value DistributionStrategy::reduced_shared(VariableAggregation aggregation, const Value& value,
                                           const std::vector<Device*>& on) const {
  StrategyExtended& extended = strategy_->extended();
  if (spans_workers()) {
    if (aggregation == kOnlyFirstTower) return value;
    return extended.batch_reduce_to(reduce_op_from_aggregation(aggregation), {{value, Destinations(on)}}).front();
  }
  if (num_towers() > 1) {
    throw ValueError(fmt::format("a non-DistributedValues value{} cannot be reduced by {} over {} towers",
                                 value.is(ValueKind::number) ? fmt::format(" {:.1f}", value.number()) : "",
                                 name_of(aggregation), num_towers()));
  }
  return copied(on, value);
}

Value DistributionStrategy::reduced_parts(ReduceOp op, const Value& value, const std::vector<Device*>& on) const {
  const Value::Parts& parts = value.parts();
  if (parts.empty()) throw ValueError("a reduction of no values");
  if (parts.front().is(ValueKind::list)) return reduced_map_output(op, value, on);
  StrategyExtended& extended = strategy_->extended();
  if (parts.front().is(ValueKind::number)) {
    const Value number = extended.implementation().reduce_number(op, value);
    return as_mirrored(copied(on, are_integers(parts) ? as_integer(number) : number));
  }
  return as_mirrored(extended.batch_reduce_to(op, {{value, Destinations(on)}}).front());
}

// MEAN divides by the number of mapped elements, which differs from device to device and may be 0.
Value DistributionStrategy::reduced_map_output(ReduceOp op, const Value& lists, const std::vector<Device*>& on) const {
  double count = 0;
  Value::Parts sums;
  for (const Value& list : lists.parts()) {
    if (list.parts().empty()) continue;
    count += static_cast<double>(list.parts().size());
    sums.push_back(sum_of(list.parts()));
  }
  if (sums.empty()) throw ValueError("a reduction of no values");
  const Value sum = sum_of(sums);
  return as_mirrored(copied(on, op == ReduceOp::sum ? sum : divided(sum, count)));
}

Value DistributionStrategy::fetch(const Value& value, const std::string& destination,
                                  const FetchFunction& function) const {
  require_cross_tower_context(*strategy_, "fetch()");
  const auto fetched = [&](const Value& part) { return function ? function(part.tensor()) : part; };
  Device& device = *Destinations(destination).resolve(strategy_->extended().worker()).front();
  if (is_direct()) {
    return copied({&device}, fetched(value.is(ValueKind::variable) ? Value(value.variable()->read()) : value));
  }
  if (value.is(ValueKind::variable) && value.variable()->kind() == VariableKind::sync_on_read) {
    return fetched(copied({&device}, value.variable()->read()));
  }
  const bool is_mirrored = value.is(ValueKind::mirrored) ||
                           (value.is(ValueKind::variable) && value.variable()->kind() == VariableKind::mirrored);
  if (!is_mirrored) {
    throw AssertionError(
        fmt::format("only mirrored and tower-local values can be fetched, not a {}", name_of(value.kind())));
  }
  const DistributedValues by_device = DistributedValues::of(value);
  const std::vector<std::string> devices = by_device.devices();
  const bool is_there = std::find(devices.begin(), devices.end(), device.id().text()) != devices.end();
  return copied({&device}, fetched(by_device.get(is_there ? device.id().text() : devices.front())));
}

}  // namespace tandem::tower
