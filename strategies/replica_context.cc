#include "strategies/replica_context.h"

#include "strategies/context.h"
#include "strategies/errors.h"
#include "strategies/regroup.h"
#include "strategies/replica_group.h"
#include "strategies/strategy.h"

namespace tandem {

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

Value ReplicaContext::merge_call(const MergeFunction& function, const Value::Parts& arguments) {
  check_current();
  if (group_) return group_->merge_call(replica_id_, function, arguments);
  const ModeGuard cross(Mode{.strategy = &strategy_});
  return select_replica(0, function(strategy_, arguments));
}

Value ReplicaContext::all_reduce(ReduceOp op, const Value& value) {
  return merge_call(
      [op](Strategy& strategy, const Value::Parts& merged) {
        return map_structure(merged.front(),
                             [&](const Value& leaf) { return strategy.extended().all_reduce(op, leaf); });
      },
      {value});
}

PendingReduction ReplicaContext::all_reduce_async(ReduceOp op, const std::vector<Tensor>& tensors) {
  const Value mine = Value::list(Value::Parts(tensors.begin(), tensors.end()));
  merge_call(
      [op](Strategy& strategy, const Value::Parts& merged) {
        strategy.extended().begin_all_reduce(op, merged.front());
        return Value();
      },
      {mine});
  // No replica reaches the next merge point before all have resumed from this one, so the events are still these.
  return {device().compute_stream(), strategy_.extended().all_reduce_end(replica_id_)};
}

}  // namespace tandem
