#include "strategies/strategy.h"

#include <fmt/format.h>

#include "strategies/dataset.h"
#include "strategies/distributed_dataset.h"
#include "strategies/errors.h"
#include "strategies/regroup.h"
#include "strategies/replica_context.h"

namespace tandem {
namespace {

// The calls that need the strategy's own cross-replica context, or no context at all.
void require_cross_replica(const Strategy& strategy, std::string_view call) {
  const Mode* mode = current_mode();
  if (!mode) return;
  if (mode->strategy != &strategy) {
    throw RuntimeError(fmt::format("{}() of strategy '{}' inside a context of '{}': mixing different strategies", call,
                                   strategy.name(), mode->strategy->name()));
  }
  if (mode->replica) {
    throw RuntimeError(fmt::format("{}() was called in a replica context, and needs the cross-replica context", call));
  }
}

Value reduce_numbers(ReduceOp op, const Value::Parts& parts) {
  double sum = 0;
  for (const Value& part : parts) sum += part.number();
  return op == ReduceOp::sum ? sum : sum / static_cast<double>(parts.size());
}

Value reduce_shared(ReduceOp op, const Value& value, int replicas) {
  if (op == ReduceOp::mean || replicas == 1) return value;
  if (value.is(ValueKind::number) && value.number() == 0) return value;
  throw ValueError(
      fmt::format("SUM over {} replicas of a {} that is the same object in all of them: it would count it {} "
                  "times; return a value per replica",
                  replicas, name_of(value.kind()), replicas));
}

Shape without_axis(const Shape& shape, int axis) {
  std::vector<std::int64_t> rest;
  for (int i = 0; i < shape.rank(); ++i) {
    if (i != axis) rest.push_back(shape[i]);
  }
  return Shape(std::span<const std::int64_t>(rest));
}

// Each replica's sum over the axis, on its device; adds up the elements along it.
Value sum_over_axis(const Value& value, int axis, std::int64_t& elements) {
  const Value::Parts bare = {value};
  Value::Parts sums;
  for (const Value& part : value.is_distributed() ? value.parts() : bare) {
    const Tensor& tensor = part.tensor();
    const int rank = tensor.shape().rank();
    if (axis < -rank || axis >= rank)
      throw ValueError(fmt::format("axis {} of a tensor of shape {}", axis, tensor.shape().text()));
    const int positive = axis < 0 ? axis + rank : axis;
    const Tensor sum = tensor.device().allocate(tensor.dtype(), without_axis(tensor.shape(), positive));
    tensor.device().compute_stream().launch(op::sum_axis(sum, tensor, positive));
    elements += tensor.shape()[positive];
    sums.emplace_back(sum);
  }
  return sums.size() == 1 ? sums.front() : Value::per_replica(std::move(sums));
}

template <typename T>
void fill_with(std::span<T> values, const std::function<double(std::int64_t)>& function) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(function(static_cast<std::int64_t>(i)));
}

// The initial value is made once, so that components are equal even where it is random.
void copy_initial_value(Device& host, const VariableSpec& spec, const std::vector<Tensor>& components) {
  const Tensor initial = host.allocate(spec.dtype, spec.shape);
  host.compute_stream().launch(op::host_function("initial value", {}, [initial, spec] {
    switch (spec.dtype) {
      case DType::f32:
        return fill_with(initial.values<float>(), spec.initial_value);
      case DType::f64:
        return fill_with(initial.values<double>(), spec.initial_value);
      case DType::i32:
        return fill_with(initial.values<std::int32_t>(), spec.initial_value);
      case DType::i64:
        return fill_with(initial.values<std::int64_t>(), spec.initial_value);
      default:
        throw TypeError("an initial value for a variable of this element type");
    }
  }));
  const Event ready = host.compute_stream().record();
  for (const Tensor& component : components) {
    Stream& stream = component.device().compute_stream();
    stream.wait(ready);
    stream.copy(component, initial, Category::other);
  }
}

}  // namespace

Strategy::Strategy(std::string name, std::unique_ptr<StrategyExtended> extended)
    : name_(std::move(name)), extended_(std::move(extended)) {}
Strategy::~Strategy() = default;

int Strategy::num_replicas_in_sync() const {
  return extended_->num_replicas();
}

Scope Strategy::scope() {
  const Mode* mode = current_mode();
  if (mode && mode->strategy != this) {
    throw RuntimeError(fmt::format("scope of strategy '{}' inside a context of '{}': mixing different strategies",
                                   name_, mode->strategy->name()));
  }
  if (mode && mode->replica) throw RuntimeError("scope() was called in a replica context of the same strategy");
  return std::make_unique<ModeGuard>(Mode{.strategy = this});
}

Value Strategy::run(const ReplicaFunction& function, const Value::Parts& arguments) {
  require_cross_replica(*this, "run");
  const ModeGuard cross(Mode{.strategy = this});
  return extended_->call_for_each_replica(*this, function, arguments);
}

Value Strategy::reduce(ReduceOp op, const Value& value, std::optional<int> axis) {
  require_cross_replica(*this, "reduce");
  return map_structure(value, [&](const Value& leaf) -> Value {
    if (leaf.is(ValueKind::mirrored)) {
      if (op == ReduceOp::sum) throw AssertionError("SUM of a mirrored value, which is equal on all replicas");
      return leaf;
    }
    Device& host = extended_->worker().cpu();
    if (axis) {
      std::int64_t elements = 0;
      const Value sums = sum_over_axis(leaf, *axis, elements);
      const Tensor sum = extended_->reduce_to(ReduceOp::sum, sums, host).tensor();
      if (op == ReduceOp::mean) {
        host.compute_stream().launch(op::scale_add(sum, sum, 1.0 / static_cast<double>(elements), 0));
      }
      return sum;
    }
    if (!leaf.is_distributed()) {
      const Value shared = reduce_shared(op, leaf, num_replicas_in_sync());
      return shared.is(ValueKind::tensor) ? extended_->reduce_to(ReduceOp::mean, shared, host) : shared;
    }
    return leaf.parts().front().is(ValueKind::number) ? reduce_numbers(op, leaf.parts())
                                                      : extended_->reduce_to(op, leaf, host);
  });
}

Value::Parts Strategy::experimental_local_results(const Value& value) const {
  Value::Parts results;
  for (int i = 0; i < num_replicas_in_sync(); ++i) results.push_back(select_replica(i, value));
  return results;
}

std::shared_ptr<Variable> Strategy::create_variable(const VariableSpec& spec) {
  if (spec.synchronization == VariableSynchronization::none) {
    throw ValueError(
        fmt::format("variable '{}': synchronization NONE has no meaning for a distributed variable", spec.name));
  }
  if (spec.aggregation == VariableAggregation::mean && spec.dtype != DType::f32 && spec.dtype != DType::f64) {
    throw ValueError(
        fmt::format("variable '{}' of type {} cannot aggregate by MEAN", spec.name, tandem::name_of(spec.dtype)));
  }
  std::vector<Tensor> components;
  for (Device* device : extended_->parameter_devices()) {
    components.push_back(device->allocate(spec.dtype, spec.shape));
    if (!spec.initial_value) device->compute_stream().launch(op::fill(components.back(), 0));
  }
  if (spec.initial_value) copy_initial_value(extended_->worker().cpu(), spec, components);
  return std::make_shared<Variable>(*this, spec, std::move(components));
}

DistributedDataset Strategy::experimental_distribute_dataset(Dataset dataset) {
  return DistributedDataset(std::move(dataset), extended_->worker(), extended_->worker_devices());
}

}  // namespace tandem
