#include "strategies/strategy/replica_context.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>

#include "engine/purpose.h"
#include "strategies/base/errors.h"
#include "strategies/cross_device/copies.h"
#include "strategies/cross_device/host_values.h"
#include "strategies/strategy/context.h"
#include "strategies/strategy/regroup.h"
#include "strategies/strategy/replica_group.h"
#include "strategies/strategy/strategy.h"
#include "strategies/values/means.h"
#include "strategies/values/shapes.h"
#include "strategies/variables/variable.h"

namespace tandem {
namespace {

// Returns a number as an object of its own, as TensorFlow makes a tensor of it in each replica; anything else
// unchanged.
Value own_number(const Value& leaf) {
  if (!leaf.is(ValueKind::number)) return leaf;
  return leaf.is_integer() ? Value::integer(leaf.integer_number()) : Value(leaf.number());
}

}  // namespace

int ReplicaContext::num_replicas_in_sync() const {
  return strategy_.num_replicas_in_sync();
}

Device& ReplicaContext::device() const {
  if (!device_) throw RuntimeError("the default strategy has no device; enter another strategy's scope and use run()");
  return *device_;
}

void ReplicaContext::check_current() const {
  const ReplicaContext* current = get_replica_context();
  if (current == this) return;
  if (!current) throw RuntimeError("called in a cross-replica context; this needs the replica context of run()");
  if (&current->strategy() == &strategy_)
    throw RuntimeError("called on another replica's context (mismatching context)");
  throw RuntimeError("called on the replica context of another strategy: mixing different strategies");
}

std::string MergePurpose::text() const {
  if (variables.empty()) return call.empty() ? "merge_call()" : call;
  std::vector<std::string> names;
  for (const Variable* variable : variables) names.push_back("'" + canonical_name(variable->name()) + "'");
  return fmt::format("{} of variable{} {}", call, names.size() > 1 ? "s" : "", fmt::join(names, ", "));
}

Value ReplicaContext::merge_call(const MergeFunction& function, const Value::Parts& arguments,
                                 const MergePurpose& purpose) {
  TANDEM_REQUIRE(function, "merge_call() of no function");
  check_current();
  if (group_) return group_->merge_call(local_id_, function, arguments, purpose);
  const CallPurpose noted([&] { return purpose.text(); });
  const ModeGuard cross(Mode{.strategy = &strategy_});
  return select_replica(0, function(strategy_, arguments));
}

Value ReplicaContext::all_reduce(ReduceOp op, const Value& value, const CommunicationOptions& options) {
  check_communication_options(options);
  const Value own = map_structure(value, [](const Value& leaf) -> Value {
    return leaf.is(ValueKind::variable) ? Value(leaf.variable()->value()) : own_number(leaf);
  });
  const std::size_t replicas = group_ ? group_->size() : 1;
  const Value combined = merge_call(
      [op, replicas, &options](Strategy& strategy, const Value::Parts& merged) {
        StrategyImplementation& implementation = strategy.extended().implementation();
        return map_structure(merged.front(), [&](const Value& merged_leaf) {
          const bool is_alone = strategy.num_replicas_in_sync() == 1;
          const Value leaf = is_alone ? merged_leaf : as_mean_operand(op, merged_leaf);
          // If all parts are components of one variable, they come as that variable.
          if (!leaf.is(ValueKind::variable)) {
            const bool is_shared = replicas > 1 && !leaf.is_distributed();  // and counts once for each replica
            return implementation.all_reduce(op, is_shared ? Value::per_replica(Value::Parts(replicas, leaf)) : leaf,
                                             options);
          }
          return implementation.all_reduce(op, Value::per_replica(leaf.variable()->component_values()), options);
        });
      },
      {own}, {"all_reduce() by " + std::string(name_of(op))});
  return map_structure(combined, [this](const Value& leaf) -> Value {
    if (group_ && leaf.is(ValueKind::tensor)) return copy_on(device(), leaf.tensor());
    if (group_ && leaf.is(ValueKind::sparse)) return copy_on(device(), leaf.slices());
    return own_number(leaf);
  });
}

Value ReplicaContext::all_gather(const Value& value, int axis) {
  map_structure(value, [](const Value& leaf) {
    if (leaf.is(ValueKind::sparse)) throw NotImplementedError("all_gather does not support IndexedSlices");
    return leaf;
  });
  return merge_call(
      [axis](Strategy& strategy, const Value::Parts& merged) {
        StrategyExtended& extended = strategy.extended();
        return map_structure(merged.front(), [&](const Value& leaf) {
          return extended.implementation().gather_to(
              leaf, axis, strategy.num_replicas_in_sync() == 1 ? std::vector<Device*>{} : extended.worker_devices());
        });
      },
      {value}, {fmt::format("all_gather() along axis {}", axis)});
}

// Returns the sum of the sizes of the replicas before this one; if tensors hold no data, assumes that all sizes are
// equal to this replica's.
std::int64_t ReplicaContext::rows_before(std::int64_t size) {
  const Value all = all_gather(Value(static_cast<double>(size)), 0);
  if (!all.is(ValueKind::tensor)) return 0;  // the only replica
  const std::vector<double> sizes = host_values(strategy_.extended().worker(), all.tensor());
  if (sizes.empty()) return size * replica_id_;
  return static_cast<std::int64_t>(std::accumulate(sizes.begin(), sizes.begin() + replica_id_, 0.0));
}

Tensor ReplicaContext::all_gather_gradient(const Tensor& gradient, int axis, std::int64_t size) {
  const Tensor total = all_reduce(ReduceOp::sum, gradient).tensor();
  const std::int64_t first = rows_before(size);
  Tensor mine = device().allocate(gradient.dtype(), with_dimension(gradient.shape(), axis, size));
  device().compute_stream().launch(op::take_along(mine, total, axis, first));
  return mine;
}

PendingReduction ReplicaContext::all_reduce_async(ReduceOp op, const std::vector<Tensor>& tensors) {
  const Value mine = Value::list(Value::Parts(tensors.begin(), tensors.end()));
  merge_call(
      [op](Strategy& strategy, const Value::Parts& merged) {
        strategy.extended().implementation().begin_all_reduce(op, merged.front());
        return Value();
      },
      {mine}, {"all_reduce_async() by " + std::string(name_of(op))});
  // No replica reaches the next merge point before all have resumed from this one, so the events have not been
  // replaced.
  return {device().compute_stream(), strategy_.extended().implementation().all_reduce_end(local_id_)};
}

std::shared_ptr<Variable> ReplicaContext::variable(
    const VariableSpec& spec, const std::function<std::shared_ptr<Variable>(const VariableSpec&)>& make) {
  return group_ ? group_->variable(local_id_, spec, make) : make(spec);
}

}  // namespace tandem
