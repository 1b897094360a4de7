#include "strategies/training/metrics.h"

#include <fmt/format.h>

#include "engine/op.h"
#include "strategies/base/errors.h"
#include "strategies/cross_device/copies.h"
#include "strategies/cross_device/host_values.h"
#include "strategies/strategy/arithmetic.h"
#include "strategies/strategy/context.h"
#include "strategies/strategy/default_strategy.h"
#include "strategies/strategy/replica_context.h"
#include "strategies/strategy/strategy.h"

namespace tandem::metrics {
namespace {

using kernel::Binary;

Tensor like(const Tensor& tensor) {
  return tensor.device().allocate(tensor.dtype(), tensor.shape());
}

void issue(const Tensor& result, Op op) {
  result.device().compute_stream().launch(std::move(op));
}

Tensor combined(Binary operation, const Tensor& a, const Tensor& b) {
  Tensor result = like(a);
  issue(result, op::elementwise(operation, result, a, b));
  return result;
}

Tensor filled_like(const Tensor& tensor, double value) {
  Tensor result = like(tensor);
  issue(result, op::fill(result, value));
  return result;
}

Tensor in_type(const Tensor& tensor, DType dtype) {
  if (tensor.dtype() == dtype) return tensor;
  Tensor converted = tensor.device().allocate(dtype, tensor.shape());
  issue(converted, op::cast(converted, tensor));
  return converted;
}

// 1 where an element is positive, else 0.
Tensor positive(const Tensor& tensor) {
  Tensor result = filled_like(tensor, 1);
  issue(result, op::relu_gradient(result, result, tensor));
  return result;
}

// 1 where an element is not zero, else 0.
Tensor nonzero(const Tensor& tensor) {
  Tensor negated = like(tensor);
  issue(negated, op::scale_add(negated, tensor, -1, 0));
  return combined(Binary::add, positive(tensor), positive(negated));
}

// a / b, and 0 where b is 0.
Tensor quotient_or_zero(const Tensor& a, const Tensor& b) {
  const Tensor has_quotient = nonzero(b);
  const Tensor divisor = combined(Binary::add, b, combined(Binary::subtract, filled_like(b, 1), has_quotient));
  return combined(Binary::multiply, combined(Binary::divide, a, divisor), has_quotient);
}

// What computes with a metric's state: the replica's device, and the host outside.
Device& current_device(const Metric& metric) {
  const ReplicaContext* replica = get_replica_context();
  if (replica && &replica->strategy() != &default_strategy()) return replica->device();
  return metric.variables().front()->strategy().extended().worker().cpu();
}

Tensor tensor_of(const Value& given, Device& device, DType number_type = DType::f32) {
  const Value value = current_part(given);
  if (value.is(ValueKind::number)) return constant(device, {value.number()}, Shape{}, number_type);
  return copy_on(device, value.is(ValueKind::variable) ? value.variable()->value() : value.tensor());
}

Tensor scalar_sum(const Tensor& tensor) {
  Tensor sum = tensor.device().allocate(tensor.dtype(), Shape{});
  issue(sum, op::sum_axis(sum, tensor.reshape({tensor.element_count()}), 0));
  return sum;
}

// Values of f32, with a weight for each where there are weights.
struct Weighted {
  Tensor values{}, weights{};
};

bool is_prefix(const Shape& weights, const Shape& values) {
  if (weights.rank() > values.rank()) return false;
  for (int axis = 0; axis < weights.rank(); ++axis) {
    if (weights[axis] != values[axis]) return false;
  }
  return true;
}

Weighted weighted(const Metric& metric, const Tensor& values, const std::optional<Value>& sample_weight) {
  Weighted result{.values = in_type(values, DType::f32)};
  if (!sample_weight) return result;
  const Value given = current_part(*sample_weight);
  if (given.is(ValueKind::number)) {
    result.weights = filled_like(result.values, given.number());
    return result;
  }
  result.weights = in_type(tensor_of(given, values.device()), DType::f32);
  const std::int64_t count = result.weights.element_count();
  if (count == result.values.element_count()) return result;
  if (!is_prefix(result.weights.shape(), values.shape()) || count == 0) {
    throw ValueError(
        fmt::format("metric '{}' is given values of shape {} and weights of shape {}: there is a weight "
                    "for each value, or for each index of the first axes",
                    metric.name(), values.shape().text(), result.weights.shape().text()));
  }
  const std::int64_t width = result.values.element_count() / count;
  const Tensor sums = values.device().allocate(DType::f32, result.weights.shape());
  issue(sums, op::sum_axis(sums, result.values.reshape({count, width}), 1));
  issue(sums, op::scale_add(sums, sums, 1 / static_cast<double>(width), 0));
  result.values = sums;
  return result;
}

Tensor total_of(const Weighted& weighted) {
  if (!weighted.weights) return scalar_sum(weighted.values);
  return scalar_sum(combined(Binary::multiply, weighted.values.reshape(weighted.weights.shape()), weighted.weights));
}

struct Pair {
  Tensor labels{}, predictions{};
};

// Both in one type, on the current device.
Pair compared(const Metric& metric, const Value& labels, const Value& predictions) {
  Device& device = current_device(metric);
  Pair pair{tensor_of(labels, device), tensor_of(predictions, device)};
  if (pair.labels.element_count() != pair.predictions.element_count()) {
    throw ValueError(fmt::format("metric '{}' is given labels of shape {} and predictions of shape {}", metric.name(),
                                 pair.labels.shape().text(), pair.predictions.shape().text()));
  }
  return pair;
}

// Differences that are zero only where both are equal: f64 holds those of all but 64-bit integers.
Tensor difference(const Pair& pair) {
  const auto is_long = [](const Tensor& tensor) { return tensor.dtype() == DType::i64; };
  const DType dtype = is_long(pair.labels) && is_long(pair.predictions) ? DType::i64 : DType::f64;
  return combined(Binary::subtract, in_type(pair.predictions, dtype), in_type(pair.labels, dtype));
}

Tensor equal(const Pair& pair) {
  const Tensor differs = nonzero(difference(pair));
  return combined(Binary::subtract, filled_like(differs, 1), differs);
}

}  // namespace

std::shared_ptr<Variable> Metric::add_weight(const std::string& name) {
  variables_.push_back(create_variable({.name = fmt::format("{}/{}", name_, name),
                                        .trainable = false,
                                        .synchronization = VariableSynchronization::on_read,
                                        .aggregation = VariableAggregation::sum}));
  return variables_.back();
}

void Metric::require_update_context() const {
  const Strategy& strategy = variables_.front()->strategy();
  const ReplicaContext* replica = get_replica_context();
  if (&strategy == &default_strategy() || (replica && &replica->strategy() == &strategy)) return;
  throw RuntimeError(
      fmt::format("update_state() of metric '{}' is called outside run() of strategy '{}', in whose "
                  "scope it was created; call it inside, in every replica",
                  name_, strategy.name()));
}

Tensor Metric::result() {
  ReplicaContext* const replica = get_replica_context();
  if (!replica || &replica->strategy() == &default_strategy()) return computed();
  const Value merged = replica->merge_call([this](Strategy&, const Value::Parts&) { return Value(computed()); }, {},
                                           {fmt::format("result() of metric '{}'", name_)});
  return copy_on(replica->device(), merged.tensor());
}

Tensor Metric::local_result() {
  if (in_cross_replica_context()) {
    throw RuntimeError(
        fmt::format("local_result() of metric '{}' is called in a cross-replica context, where there is "
                    "no replica whose state it could be; call it inside run()",
                    name_));
  }
  return computed();
}

void Metric::reset_state() {
  const auto clear = [](Variable& variable, const Value::Parts&) {
    variable.assign(Value(0.0));
    return Value();
  };
  const ReplicaContext* replica = get_replica_context();
  for (const auto& variable : variables_) {
    // assign() in a cross-replica context would also read the sum.
    if (replica && &replica->strategy() == &variable->strategy()) {
      clear(*variable, {});
    } else {
      variable->strategy().extended().update(variable, clear);
    }
  }
}

Sum::Sum(std::string name) : Metric(std::move(name)), total_(add_weight("total")) {}

void Sum::update_state(const Value& values, const std::optional<Value>& sample_weight) {
  require_update_context();
  total_->assign_add(total_of(weighted(*this, tensor_of(values, current_device(*this)), sample_weight)));
}

Tensor Sum::computed() {
  return total_->read();
}

MeanMetric::MeanMetric(std::string name)
    : Metric(std::move(name)), total_(add_weight("total")), count_(add_weight("count")) {}

void Mean::update_state(const Value& values, const std::optional<Value>& sample_weight) {
  require_update_context();
  add_values(tensor_of(values, current_device(*this)), sample_weight);
}

void MeanMetric::add_values(const Tensor& values, const std::optional<Value>& sample_weight) {
  const Weighted given = weighted(*this, values, sample_weight);
  const Tensor total = total_of(given);
  add(total, given.weights ? scalar_sum(given.weights)
                           : filled_like(total, static_cast<double>(given.values.element_count())));
}

void MeanMetric::add(const Tensor& total, const Tensor& count) {
  total_->assign_add(total);
  count_->assign_add(count);
}

Tensor MeanMetric::computed() {
  const Tensor total = total_->read();
  return quotient_or_zero(total, copy_on(total.device(), count_->read()));
}

void Accuracy::update_state(const Value& labels, const Value& predictions, const std::optional<Value>& sample_weight) {
  require_update_context();
  add_values(equal(compared(*this, labels, predictions)), sample_weight);
}

void BinaryAccuracy::update_state(const Value& labels, const Value& predictions,
                                  const std::optional<Value>& sample_weight) {
  require_update_context();
  Pair pair = compared(*this, labels, predictions);
  pair.predictions = in_type(pair.predictions, DType::f64);
  pair.predictions = positive(combined(Binary::subtract, pair.predictions, filled_like(pair.predictions, threshold_)));
  add_values(equal(pair), sample_weight);
}

void SparseCategoricalAccuracy::update_state(const Value& labels, const Value& predictions) {
  require_update_context();
  Device& device = current_device(*this);
  const Tensor logits = tensor_of(predictions, device);
  const Tensor loss = device.allocate(logits.dtype(), Shape{1}), correct = device.allocate(DType::i32, Shape{});
  issue(loss, op::softmax_cross_entropy({.loss = loss,
                                         .gradient = {},
                                         .correct = correct,
                                         .logits = logits,
                                         .labels = in_type(tensor_of(labels, device), DType::i32)}));
  const Tensor count = device.allocate(DType::f32, Shape{});
  issue(count, op::fill(count, static_cast<double>(logits.shape()[0])));
  add(in_type(correct, DType::f32), count);
}

void MeanSquaredError::update_state(const Value& labels, const Value& predictions,
                                    const std::optional<Value>& sample_weight) {
  require_update_context();
  const Pair pair = compared(*this, labels, predictions);
  const Tensor error =
      combined(Binary::subtract, in_type(pair.predictions, DType::f32), in_type(pair.labels, DType::f32));
  add_values(combined(Binary::multiply, error, error), sample_weight);
}

}  // namespace tandem::metrics
