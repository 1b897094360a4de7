// tf.distribute.StrategyExtended: the lower half of a strategy, for those who write optimizers, variables and
// strategies.
//
// The public calls check their context and arguments; a strategy implements the protected ones. Contexts are those of
// Strategy: the strategy's own cross-replica context or the default state, update() and update_non_slot() also a
// replica context.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/worker.h"
#include "strategies/base/context.h"
#include "strategies/base/options.h"
#include "strategies/cross_device/cross_device_ops.h"
#include "strategies/values/value.h"
#include "strategies/variables/variable.h"

namespace tandem {

class ClusterResolver;
class DistributedIterator;
class MultiStepContext;
class Strategy;
struct InputWorkers;

using ReplicaFunction = std::function<Value(const Value::Parts& arguments)>;
using UpdateFunction = std::function<Value(Variable& variable, const Value::Parts& arguments)>;
using NonSlotFunction = std::function<Value(const Value::Parts& arguments)>;
using StepFunction = std::function<void(MultiStepContext& context, const Value& inputs)>;

class StrategyExtended {
 public:
  virtual ~StrategyExtended() = default;
  Strategy& strategy() const { return *strategy_; }

  virtual int num_replicas_in_sync() const { return static_cast<int>(worker_devices().size()); }
  virtual const std::vector<Device*>& worker_devices() const = 0;     // this worker's, in replica order
  virtual const std::vector<Device*>& parameter_devices() const = 0;  // where variables may be, of any worker
  virtual Worker& worker() const = 0;
  virtual int first_replica_id() const { return 0; }  // of this worker's replicas, among all in sync
  virtual std::string cross_device_ops_name() const { return "none"; }

  virtual bool experimental_between_graph() const { return false; }  // does each worker run a program of its own?
  virtual bool experimental_should_init() const { return true; }
  virtual bool should_checkpoint() const { return true; }
  virtual bool should_save_summary() const { return true; }
  virtual const ClusterResolver* cluster_resolver() const { return nullptr; }
  virtual bool in_multi_worker_mode() const { return false; }

  Value call_for_each_replica(const ReplicaFunction& function, const Value::Parts& arguments = {});

  // A value per replica combined and put on the destinations: bare on one device, mirrored on several. AssertionError
  // for a list of destinations, and for SUM of a mirrored value; see Strategy::reduce for shared values.
  Value reduce_to(ReduceOp op, const Value& value, const Destinations& destinations);
  Value reduce_to(std::string_view op, const Value& value, const Destinations& destinations) {
    return reduce_to(reduce_op_from_name(op), value, destinations);
  }
  std::vector<Value> batch_reduce_to(ReduceOp op, const std::vector<ReducePair>& pairs);
  std::vector<Value> batch_reduce_to(std::string_view op, const std::vector<ReducePair>& pairs) {
    return batch_reduce_to(reduce_op_from_name(op), pairs);
  }
  // The same without waiting, so that it runs beside the replicas' work. Dense per-replica tensors are taken over: they
  // may be overwritten and must not be touched any more.
  ReductionInFlight begin_batch_reduce_to(ReduceOp op, const std::vector<ReducePair>& pairs);

  // A copy of the value on every destination. Numbers are returned as they are; AssertionError without destinations or
  // with a list.
  Value broadcast_to(const Value& value, const Destinations& destinations);

  // Calls `function` once per component of the variable, in device order, in an update context in which the variable
  // stands for that component, with each argument's part. Grouped results are mirrored; ungrouped ones keep their
  // structure with a tuple of one result per component at each leaf. In a replica context all replicas call it, and
  // it is a merge_call.
  Value update(const std::shared_ptr<Variable>& variable, const UpdateFunction& function,
               const Value::Parts& arguments = {}, bool group = true);

  // TensorFlow's _replica_ctx_update, called by all replicas: as update(), but each replica updates its own component
  // of a mirrored variable by itself, with its parts of the arguments, so that the replicas issue their work side by
  // side.
  void replica_update(const std::shared_ptr<Variable>& variable, const UpdateFunction& function,
                      const Value::Parts& arguments = {});

  // Calls `function` once on each of the devices that non_slot_devices() gave.
  Value update_non_slot(const std::vector<Device*>& colocate_with, const NonSlotFunction& function,
                        const Value::Parts& arguments = {}, bool group = true);
  virtual std::vector<Device*> non_slot_devices(const std::vector<std::shared_ptr<Variable>>& variables);

  // Variables created during the life of the result stand where `variable` stands. RuntimeError outside this
  // strategy's contexts, ValueError for a variable that was not created under it.
  [[nodiscard]] std::unique_ptr<VariableCreatorScope> colocate_vars_with(const std::shared_ptr<Variable>& variable);

  // The container of a component's tensor; any other value itself.
  Value value_container(const Value& value) const;
  bool variable_created_in_scope(const Variable& variable) const;
  // The value of a variable in cross-replica context: sync-on-read ones aggregated.
  static Tensor read_var(Variable& variable) { return variable.read(); }

  // Calls `function` in cross-replica context `iterations` times with the iterator's next elements. Returns what was
  // set last: see MultiStepContext. Loops that begin with values have outputs of the same structure (ValueError).
  MultiStepContext run_steps(const StepFunction& function, DistributedIterator& iterator, int iterations = 1,
                             const std::map<std::string, Value>& initial_loop_values = {});

  // What the strategies' own calls and variables use; no context is checked.
  // Creates the components (and wraps them) where this strategy keeps variables.
  virtual std::shared_ptr<Variable> make_variable(const VariableSpec& spec) = 0;
  // A value per replica combined over all replicas in sync: dense tensors mirrored on the worker's devices.
  virtual Value all_reduce(ReduceOp op, const Value& value) = 0;
  // The tensors of a list per replica, combined in place (ReplicaContext::all_reduce_async), and when that ends.
  virtual void begin_all_reduce(ReduceOp op, const Value& tensors) = 0;
  virtual Event all_reduce_end(int local_replica) const = 0;
  // The replicas' tensors concatenated, on each of `to` devices.
  virtual Value gather_to(const Value& value, int axis, const std::vector<Device*>& to) = 0;
  // For distributed input: this worker's replicas among all input pipelines.
  virtual InputWorkers input_workers() = 0;
  virtual Value reduce_number(ReduceOp op, const Value& value) = 0;
  // A tensor that only some workers' hosts hold, combined over the workers: identity where there is one worker.
  virtual Value reduce_over_workers(ReduceOp /*op*/, const Value& value) { return value; }
  const std::vector<std::weak_ptr<Variable>>& variables() const { return variables_; }

 protected:
  friend class Strategy;
  virtual Value do_call_for_each_replica(const ReplicaFunction& function, const Value::Parts& arguments) = 0;
  virtual ReductionInFlight do_batch_reduce_to(ReduceOp op, const std::vector<ReducePair>& pairs) = 0;
  virtual Value do_update(const std::shared_ptr<Variable>& variable, const UpdateFunction& function,
                          const Value::Parts& arguments, bool group) = 0;
  virtual Value do_update_non_slot(const std::vector<Device*>& devices, const NonSlotFunction& function,
                                   const Value::Parts& arguments, bool group) = 0;
  virtual Scope do_scope();

 private:
  Strategy* strategy_ = nullptr;  // set by the Strategy that owns this
  std::vector<std::weak_ptr<Variable>> variables_;
};

// What update() returns for the components' results: see there.
Value combine_updates(const Value::Parts& results, bool group);

}  // namespace tandem
