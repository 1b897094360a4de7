// What a replica function sees: which replica it is, its device, and the ways to meet the other replicas.
#pragma once

#include <functional>
#include <vector>

#include "engine/worker.h"
#include "strategies/options.h"
#include "strategies/value.h"

namespace tandem {

class Strategy;
class ReplicaGroup;

using MergeFunction = std::function<Value(Strategy& strategy, const Value::Parts& arguments)>;

// The end of a reduction that runs while the replica goes on. Tensors it covers may be used after wait().
class PendingReduction {
 public:
  PendingReduction() = default;
  PendingReduction(Stream& compute, Event end) : compute_(&compute), end_(std::move(end)) {}
  // Later work on the replica's compute stream starts after the reduction. Does not block the caller.
  void wait() const {
    if (compute_) compute_->wait(end_);
  }

 private:
  Stream* compute_ = nullptr;
  Event end_;
};

class ReplicaContext {
 public:
  ReplicaContext(Strategy& strategy, int replica_id, Device* device, ReplicaGroup* group)
      : strategy_(strategy), replica_id_(replica_id), device_(device), group_(group) {}
  ReplicaContext(const ReplicaContext&) = delete;
  ReplicaContext& operator=(const ReplicaContext&) = delete;

  Strategy& strategy() const { return strategy_; }
  int replica_id_in_sync_group() const { return replica_id_; }
  int num_replicas_in_sync() const;
  // The device this replica's work goes to. RuntimeError in the default strategy, which has none.
  Device& device() const;

  // Waits until every replica has called it, then calls replica 0's `function` once, in cross-replica context, with
  // each argument regrouped over the replicas, and returns this replica's part of the result. RuntimeError, naming who
  // waits, when some replicas end without a call. All three below are made by all replicas, in the same order.
  Value merge_call(const MergeFunction& function, const Value::Parts& arguments = {});

  // Element-wise over the replicas, leaf by leaf of a nested value. The arguments are left as they are.
  Value all_reduce(ReduceOp op, const Value& value);

  // The same for dense tensors, in place and without waiting: the reduction runs on the communication streams while
  // the compute streams go on. The tensors must not be touched before wait().
  PendingReduction all_reduce_async(ReduceOp op, const std::vector<Tensor>& tensors);

 private:
  friend class ReplicaGroup;
  void check_current() const;

  Strategy& strategy_;
  int replica_id_;
  Device* device_;
  ReplicaGroup* group_;  // null with one replica
};

}  // namespace tandem
