// tf.distribute.ReplicaContext: what a replica function knows about its replica, and how it communicates with the
// others.
//
// Threads: the task of its replica, while the context is current.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/worker.h"
#include "strategies/base/communication_options.h"
#include "strategies/base/options.h"
#include "strategies/values/value.h"

namespace tandem {

class Strategy;
class ReplicaGroup;
class Variable;
struct VariableSpec;

using MergeFunction = std::function<Value(Strategy& strategy, const Value::Parts& arguments)>;

// What a replica is about to do where it meets the others, who must do the same.
struct MergePurpose {
  std::string call{};                        // "all_reduce() by SUM"; empty: a merge_call of the program
  std::vector<const Variable*> variables{};  // that it changes
  bool operator==(const MergePurpose&) const = default;
  std::string text() const;  // "assign_add() of variable 'w'", by its canonical_name()
};

// A reduction that runs while the replica goes on. The tensors it covers may be used after wait().
class PendingReduction {
 public:
  PendingReduction() = default;
  PendingReduction(Stream& compute, Event end) : compute_(&compute), end_(std::move(end)) {}
  // Makes later work on the replica's compute stream start after the reduction. Does not block the caller.
  void wait() const {
    if (compute_) compute_->wait(end_);
  }

 private:
  Stream* compute_ = nullptr;
  Event end_;
};

class ReplicaContext {
 public:
  // `local_id` counts this worker's replicas, `replica_id` all replicas in sync. `group` is null for a single replica.
  ReplicaContext(Strategy& strategy, int replica_id, int local_id, Device* device, ReplicaGroup* group)
      : strategy_(strategy), replica_id_(replica_id), local_id_(local_id), device_(device), group_(group) {}
  ReplicaContext(const ReplicaContext&) = delete;
  ReplicaContext& operator=(const ReplicaContext&) = delete;

  Strategy& strategy() const { return strategy_; }
  int replica_id_in_sync_group() const { return replica_id_; }
  int local_replica_id() const { return local_id_; }
  int num_replicas_in_sync() const;
  // The device that this replica computes on. Throws RuntimeError in the default strategy, which has none.
  Device& device() const;

  // Waits until every replica of this worker has called it, then calls replica 0's `function` once, in cross-replica
  // context, with each argument regrouped over the replicas, and returns this replica's part of the result. Throws
  // RuntimeError, naming who waits, when some replicas end without a call, and naming both calls when two replicas meet
  // with different purposes. All replicas have to make this and the following calls in the same order.
  Value merge_call(const MergeFunction& function, const Value::Parts& arguments = {}, const MergePurpose& purpose = {});

  // Combines each leaf of a nested value element-wise over the replicas. Leaves the arguments as they are. Each replica
  // gets a value of its own, tensors on its device. A variable counts as this replica's component, a value that all
  // replicas share once for each of them. IndexedSlices are concatenated in replica order, and for MEAN divided by the
  // number of replicas. Fields of `options` that are set override the strategy's for this call.
  Value all_reduce(ReduceOp op, const Value& value, const CommunicationOptions& options = {});
  Value all_reduce(std::string_view op, const Value& value, const CommunicationOptions& options = {}) {
    return all_reduce(reduce_op_from_name(op), value, options);
  }
  // Concatenates over the replicas along `axis`, in replica order; sizes along it may differ. Throws
  // InvalidArgumentError when other dimensions differ, and NotImplementedError for IndexedSlices.
  Value all_gather(const Value& value, int axis);

  // Starts an all_reduce of dense tensors in place, on the communication streams, while the compute streams go on. The
  // tensors must not be used before wait().
  PendingReduction all_reduce_async(ReduceOp op, const std::vector<Tensor>& tensors);

  // Gradients, for backward passes written by hand. The gradient of an all_reduce is an all_reduce with the same op.
  // The gradient of an all_gather is this replica's slice, `size` long along `axis`, of the SUM all_reduce.
  Value all_reduce_gradient(ReduceOp op, const Value& gradient) { return all_reduce(op, gradient); }
  Tensor all_gather_gradient(const Tensor& gradient, int axis, std::int64_t size);

  // Creates a variable for Strategy::create_variable: see ReplicaGroup::variable.
  std::shared_ptr<Variable> variable(const VariableSpec& spec,
                                     const std::function<std::shared_ptr<Variable>(const VariableSpec&)>& make);

 private:
  friend class ReplicaGroup;
  void check_current() const;
  std::int64_t rows_before(std::int64_t size);

  Strategy& strategy_;
  int replica_id_;
  int local_id_;
  Device* device_;
  ReplicaGroup* group_;  // null for a single replica
};

}  // namespace tandem
