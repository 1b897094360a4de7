// What the author of a strategy writes: how replicas run, how their values are combined, and where variables are kept.
//
// Strategy, StrategyExtended, ReplicaContext and the variables check contexts and arguments and then call these
// functions; an implementation need not check them again. Every StrategyExtended is one, so a strategy is one class:
// derive it from MirroredExtended, ReplicatedExtended or StoredExtended, which implement all or most of this, and
// override what differs (docs/writing-a-strategy.md).
//
// Threads: as for Strategy, on whose callers' tasks these functions run.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "strategies/base/communication_options.h"
#include "strategies/base/options.h"
#include "strategies/cross_device/reduction.h"
#include "strategies/strategy/context.h"
#include "strategies/values/value.h"

namespace tandem {

class Variable;
struct InputWorkers;

using ReplicaFunction = std::function<Value(const Value::Parts& arguments)>;
using UpdateFunction = std::function<Value(Variable& variable, const Value::Parts& arguments)>;
using NonSlotFunction = std::function<Value(const Value::Parts& arguments)>;

class StrategyImplementation {
 public:
  virtual ~StrategyImplementation() = default;

  // Enters the strategy's cross-replica context.
  virtual Scope do_scope() = 0;

  // Calls `function` once per local replica, in its replica context, with its part of each argument, and regroups the
  // results. Strategy::run() calls this after its checks.
  virtual Value do_call_for_each_replica(const ReplicaFunction& function, const Value::Parts& arguments) = 0;

  // Combines values on their way to destinations, for example gradients on their way to variables. The dense
  // per-replica tensors may be overwritten. Fields of `options` that are set override those of the strategy.
  virtual ReductionInFlight do_batch_reduce_to(ReduceOp op, const std::vector<ReducePair>& pairs,
                                               const CommunicationOptions& options) = 0;

  // Changes a variable: calls `function` once per component, in an update context. combine_updates() makes the result.
  virtual Value do_update(const std::shared_ptr<Variable>& variable, const UpdateFunction& function,
                          const Value::Parts& arguments, bool group) = 0;
  // Changes state that is not in a variable: calls `function` once per device.
  virtual Value do_update_non_slot(const std::vector<Device*>& devices, const NonSlotFunction& function,
                                   const Value::Parts& arguments, bool group) = 0;

  // Creates a variable's components where this strategy keeps them, and the variable around them.
  virtual std::shared_ptr<Variable> make_variable(const VariableSpec& spec) = 0;

  // Combines a value per replica over all replicas in sync; dense tensors come back mirrored on the worker's devices.
  virtual Value all_reduce(ReduceOp op, const Value& value, const CommunicationOptions& options) = 0;
  Value all_reduce(ReduceOp op, const Value& value) { return all_reduce(op, value, {}); }

  // Starts to combine the tensors of a list per replica in place (ReplicaContext::all_reduce_async).
  virtual void begin_all_reduce(ReduceOp op, const Value& tensors) = 0;
  // The event that ends the last begin_all_reduce() on a local replica's device.
  virtual Event all_reduce_end(int local_replica) const = 0;

  // Combines the numbers of all replicas in sync: one per local replica, or one number for all of them.
  virtual Value reduce_number(ReduceOp op, const Value& value) = 0;

  // Combines over the workers a value that each worker's program holds once. Returns it unchanged on one worker.
  virtual Value reduce_over_workers(ReduceOp /*op*/, const Value& value) { return value; }

  // Concatenates the tensors of all replicas in sync along `axis`, on each of the devices `to`.
  virtual Value gather_to(const Value& value, int axis, const std::vector<Device*>& to) = 0;

  // Tells the input library which of all input pipelines feeds this worker's replicas.
  virtual InputWorkers input_workers() = 0;
};

// Makes what update() returns from the results of a variable's components. Grouped results become mirrored values.
// Ungrouped ones become the structure of one result, with a tuple of all components' results at each leaf, which has a
// single element if they are all the same object.
Value combine_updates(const Value::Parts& results, bool group);

}  // namespace tandem
