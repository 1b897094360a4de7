#include "strategies/strategy/strategy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "engine/purpose.h"
#include "strategies/base/errors.h"
#include "strategies/input/dataset.h"
#include "strategies/input/distributed_dataset_v1.h"
#include "strategies/strategy/default_strategy.h"
#include "strategies/strategy/regroup.h"
#include "strategies/strategy/replica_context.h"
#include "strategies/values/means.h"
#include "strategies/values/shapes.h"

namespace tandem {
namespace {

// Returns the axes counted from the front, the last one first, so that removing one leaves the others in place.
std::vector<int> positive_axes(const Axes& axes, const Shape& shape) {
  std::vector<int> positive;
  for (const int axis : axes.list()) {
    if (axis < -shape.rank() || axis >= shape.rank()) {
      throw ValueError(fmt::format("axis {} of a tensor of shape {}", axis, shape.text()));
    }
    positive.push_back(axis < 0 ? axis + shape.rank() : axis);
  }
  std::sort(positive.rbegin(), positive.rend());
  if (std::adjacent_find(positive.begin(), positive.end()) != positive.end()) {
    throw InvalidArgumentError(fmt::format("an axis of a tensor of shape {} is named twice", shape.text()));
  }
  return positive;
}

std::string text_of(const std::optional<Axes>& axes) {
  if (!axes || axes->list().empty()) return "";
  return fmt::format(" along ax{} {}", axes->list().size() > 1 ? "es" : "is", fmt::join(axes->list(), ", "));
}

// Sums a replica's tensor over the axes, on its device, and adds the number of elements along them to `elements`.
Tensor sum_over_axes(const Tensor& tensor, const Axes& axes, double& elements) {
  Tensor sum = tensor;
  double count = 1;
  for (const int axis : positive_axes(axes, tensor.shape())) {
    count *= static_cast<double>(tensor.shape()[axis]);
    const Tensor smaller = sum.device().allocate(sum.dtype(), without_axis(sum.shape(), axis));
    sum.device().compute_stream().launch(op::sum_axis(smaller, sum, axis));
    sum = smaller;
  }
  elements += count;
  return sum;
}

// Divides in the tensor's type where that is floating-point, else in f64.
Tensor divided(const Tensor& sum, double elements) {
  const Tensor operand = is_whole(sum.dtype()) ? as_f64(sum) : sum;
  Tensor quotient = sum.device().allocate(operand.dtype(), sum.shape());
  sum.device().compute_stream().launch(op::scale_add(quotient, operand, 1 / elements, 0));
  return quotient;
}

// Returns what each local replica would get for an argument of run().
Value::Parts seen_by_replicas(const Strategy& strategy, const Value& leaf) {
  if (leaf.is_distributed()) return leaf.parts();
  if (!leaf.is(ValueKind::variable)) return Value::Parts(strategy.extended().worker_devices().size(), leaf);
  Value::Parts values = leaf.variable()->component_values();
  if (values.size() > 1) return values;
  return Value::Parts(strategy.extended().worker_devices().size(), values.front());
}

// Sums in each replica its own value, or the value that all share, and reduces the sums, as TensorFlow does.
Value reduce_over_axes(Strategy& strategy, ReduceOp op, const Value& leaf, const Axes& axes) {
  StrategyExtended& extended = strategy.extended();
  double elements = 0;
  Value::Parts sums;
  for (const Value& part : seen_by_replicas(strategy, leaf)) {
    if (part.is(ValueKind::number)) positive_axes(axes, {});  // throws: a number has no axis
    sums.emplace_back(sum_over_axes(part.tensor(), axes, elements));
  }
  const bool is_alone = strategy.num_replicas_in_sync() == 1;
  const Value parts = is_alone ? sums.front() : Value::per_replica(sums);
  Tensor sum = extended.reduce_to(ReduceOp::sum, parts, extended.worker().cpu()).tensor();
  if (op == ReduceOp::sum) return sum;
  return divided(sum, extended.implementation().reduce_number(ReduceOp::sum, elements).number());
}

// Whether the value has a part for each local replica.
bool has_parts(const Value& value) {
  if (value.is(ValueKind::variable)) return value.variable()->kind() != VariableKind::aggregating;
  return value.is_distributed() || value.is_nest();
}

}  // namespace

Strategy::Strategy(std::string name, std::unique_ptr<StrategyExtended> extended)
    : name_(std::move(name)), extended_(std::move(extended)) {
  TANDEM_REQUIRE(extended_, "a Strategy without a StrategyExtended");
  extended_->strategy_ = this;
}
Strategy::~Strategy() = default;

int Strategy::num_replicas_in_sync() const {
  return extended_->num_replicas_in_sync();
}

const ClusterResolver* Strategy::cluster_resolver() const {
  return extended_->cluster_resolver();
}

Scope Strategy::scope() {
  const Mode* mode = current_mode();
  if (mode && mode->strategy != this) {
    throw RuntimeError(fmt::format("scope of strategy '{}' inside a context of '{}': mixing different strategies",
                                   name_, mode->strategy->name()));
  }
  if (mode && mode->replica) throw RuntimeError("scope() was called in a replica context of the same strategy");
  return extended_->implementation().do_scope();
}

Value Strategy::run(const ReplicaFunction& function, const Value::Parts& arguments) {
  TANDEM_REQUIRE(function, "run() of no function");
  require_cross_replica(*this, "run()");
  const ModeGuard cross(Mode{.strategy = this});
  return extended_->implementation().do_call_for_each_replica(function, arguments);
}

Value Strategy::reduce(ReduceOp op, const Value& value, const std::optional<Axes>& axes) {
  require_cross_replica(*this, "reduce()");
  const CallPurpose noted([&] { return fmt::format("reduce() by {}{}", name_of(op), text_of(axes)); });
  return map_structure(value, [&](const Value& given) -> Value {
    Value leaf = opened_if_sync_on_read(given);
    if (axes && !axes->list().empty()) return reduce_over_axes(*this, op, leaf, *axes);
    if (leaf.is(ValueKind::mirrored) || leaf.is(ValueKind::variable)) {
      if (op == ReduceOp::sum && num_replicas_in_sync() > 1) {
        throw AssertionError("SUM of a mirrored value, which is equal on all replicas");
      }
      return leaf;
    }
    if (leaf.is(ValueKind::number)) return extended_->implementation().reduce_over_workers(op, leaf);
    if (leaf.is_distributed() && leaf.parts().front().is(ValueKind::number))
      return extended_->implementation().reduce_number(op, leaf);
    if (&default_strategy() == this) return leaf;
    return extended_->reduce_to(op, leaf, extended_->worker().cpu());
  });
}

Value Strategy::gather(const Value& value, int axis) {
  const Mode* mode = current_mode();
  if (mode && mode->replica && mode->strategy == this) {
    throw RuntimeError("gather() was called in a replica context; use all_gather() of the replica context");
  }
  require_cross_replica(*this, "gather()");
  const CallPurpose noted([&] { return fmt::format("gather() along axis {}", axis); });
  return map_structure(value, [&](const Value& leaf) {
    if (leaf.is(ValueKind::sparse)) throw NotImplementedError("gather does not support IndexedSlices");
    return extended_->implementation().gather_to(
        leaf, axis,
        num_replicas_in_sync() == 1 ? std::vector<Device*>{} : std::vector<Device*>{&extended_->worker().cpu()});
  });
}

Value::Parts Strategy::experimental_local_results(const Value& value) const {
  if (this == &default_strategy() || !has_parts(value)) return {value};
  Value::Parts results;
  for (std::size_t i = 0; i < extended_->worker_devices().size(); ++i) {
    results.push_back(map_structure(select_replica(static_cast<int>(i), value), [&](const Value& leaf) -> Value {
      if (!leaf.is(ValueKind::variable) || leaf.variable()->components().size() <= i) return leaf;
      return leaf.variable()->component_value(static_cast<int>(i));
    }));
  }
  return results;
}

std::shared_ptr<Variable> Strategy::create_variable(const VariableSpec& spec) {
  const Scope scope = current_mode() || this == &default_strategy() ? nullptr : this->scope();
  const auto make = [this](const VariableSpec& wanted) {
    std::shared_ptr<Variable> variable = extended_->implementation().make_variable(checked_spec(wanted));
    // The default strategy is that of all workers, whose programs may run at the same time; nobody asks it.
    if (this != &default_strategy()) extended_->note_variable(variable);
    return variable;
  };
  NextCreator next = [this, &make](const VariableSpec& wanted) {
    const Mode* mode = current_mode();
    const bool is_in_replica = mode && mode->replica && mode->strategy == this;
    return is_in_replica ? mode->replica->variable(wanted, make) : make(wanted);
  };
  for (const VariableCreator& creator : variable_creators()) {
    next = [&creator, inner = std::move(next)](const VariableSpec& wanted) { return creator(inner, wanted); };
  }
  return next(spec);
}

DistributedDataset Strategy::experimental_distribute_dataset(const Dataset& dataset) {
  return experimental_distribute_dataset(dataset, InputOptions{});
}
DistributedDataset Strategy::experimental_distribute_dataset(const Dataset& dataset, const InputOptions& options) {
  require_cross_replica(*this, "experimental_distribute_dataset()");
  InputWorkers workers = extended_->implementation().input_workers();
  workers.options = options;
  return distribute_dataset(dataset, workers);
}

DistributedIteratorV1 Strategy::make_dataset_iterator(const Dataset& dataset) {
  return DistributedIteratorV1(
      {{experimental_distribute_dataset(dataset), extended_->implementation().input_workers().devices}});
}

DistributedIteratorV1 Strategy::make_input_fn_iterator(const InputFunction& function, InputReplicationMode mode) {
  require_cross_replica(*this, "make_input_fn_iterator()");
  return tandem::make_input_fn_iterator(function, extended_->implementation().input_workers(), mode);
}

DistributedDataset Strategy::distribute_datasets_from_function(const DatasetFunction& function) {
  return distribute_datasets_from_function(function, InputOptions{});
}
DistributedDataset Strategy::distribute_datasets_from_function(const DatasetFunction& function,
                                                               const InputOptions& options) {
  require_cross_replica(*this, "distribute_datasets_from_function()");
  InputWorkers workers = extended_->implementation().input_workers();
  workers.options = options;
  return tandem::distribute_datasets_from_function(function, workers);
}

Value Strategy::experimental_distribute_values_from_function(
    const std::function<Value(const ValueContext&)>& function) {
  require_cross_replica(*this, "experimental_distribute_values_from_function()");
  if (extended_->has_one_replica_by_kind()) return function(ValueContext());
  Value::Parts parts;
  for (int i = 0; i < static_cast<int>(extended_->worker_devices().size()); ++i) {
    parts.push_back(function(ValueContext(extended_->first_replica_id() + i, num_replicas_in_sync())));
  }
  return regroup(parts, true);
}

}  // namespace tandem
