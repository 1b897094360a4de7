// tf.distribute.StrategyExtended: the lower half of a strategy's API, for those who write optimizers, metrics and
// training loops. Those who write strategies also read strategy_implementation.h.
//
// Unless a call says otherwise it is made in the strategy's own cross-replica context or in the default state; in any
// other context it throws RuntimeError.
//
// Threads: as for Strategy.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/worker.h"
#include "strategies/strategy/strategy_implementation.h"
#include "strategies/variables/variable.h"

namespace tandem {

class ClusterResolver;
class DistributedIterator;
class MultiStepContext;

using StepFunction = std::function<void(MultiStepContext& context, const Value& inputs)>;

class StrategyExtended : protected StrategyImplementation {
 public:
  Strategy& strategy() const { return *strategy_; }
  // The unchecked calls below this class, for the strategies' own code.
  StrategyImplementation& implementation() { return *this; }

  virtual int num_replicas_in_sync() const { return static_cast<int>(worker_devices().size()); }
  virtual const std::vector<Device*>& worker_devices() const = 0;     // this worker's, in replica order
  virtual const std::vector<Device*>& parameter_devices() const = 0;  // where variables may be, on any worker
  virtual Worker& worker() const = 0;
  virtual int first_replica_id() const { return 0; }  // of this worker, among all in sync
  // How replicas reduce their values, "auto" resolved: "collective", "reduction_to_one_device", or the name of
  // user-defined operations. "none" where nothing is reduced.
  virtual std::string cross_device_ops_name() const { return "none"; }

  virtual bool experimental_between_graph() const { return false; }  // does each worker run a program of its own?
  virtual bool experimental_should_init() const { return true; }
  virtual bool should_checkpoint() const { return true; }
  virtual bool should_save_summary() const { return true; }
  // Whether tensors must have the same shapes in every step.
  virtual bool experimental_require_static_shapes() const { return false; }
  virtual const ClusterResolver* cluster_resolver() const { return nullptr; }
  // Whether every strategy of this kind has one replica, so that its values are never wrapped.
  virtual bool has_one_replica_by_kind() const { return false; }
  virtual bool in_multi_worker_mode() const { return false; }

  // Strategy::run() under its older name.
  Value call_for_each_replica(const ReplicaFunction& function, const Value::Parts& arguments = {});

  // Combines a value per replica on the destinations: bare on one device, mirrored on several. `op` may be a text in
  // any letter case. Fields of `options` that are set override the strategy's for this call. Throws AssertionError for
  // a list of destinations and for SUM of a mirrored value, and ValueError for options that check_communication_options
  // refuses. Numbers are on no device: they need no destination (tensors do: ValueError), and are bare unless there are
  // several. See Strategy::reduce for values that all replicas share.
  Value reduce_to(ReduceOp op, const Value& value, const Destinations& destinations = {},
                  const CommunicationOptions& options = {});
  Value reduce_to(std::string_view op, const Value& value, const Destinations& destinations = {},
                  const CommunicationOptions& options = {});
  // Does the same for several values, which may be packed together. Throws ValueError when some are 32-bit integers,
  // which need other cross-device operations than the rest.
  std::vector<Value> batch_reduce_to(ReduceOp op, const std::vector<ReducePair>& pairs,
                                     const CommunicationOptions& options = {});
  std::vector<Value> batch_reduce_to(std::string_view op, const std::vector<ReducePair>& pairs,
                                     const CommunicationOptions& options = {});
  // Starts batch_reduce_to() and lets it run beside the replicas' work. Takes over the dense per-replica tensors: they
  // may be overwritten and must not be used any more.
  ReductionInFlight begin_batch_reduce_to(ReduceOp op, const std::vector<ReducePair>& pairs,
                                          const CommunicationOptions& options = {});

  // Do the same as batch_reduce_to() and begin_batch_reduce_to() with SUM, for sums that the caller gives to update()
  // of the variables that are the destinations, and to nothing else.
  virtual std::vector<Value> sum_for_updates(const std::vector<ReducePair>& pairs) {
    return batch_reduce_to(ReduceOp::sum, pairs);
  }
  virtual ReductionInFlight begin_sum_for_updates(const std::vector<ReducePair>& pairs) {
    return begin_batch_reduce_to(ReduceOp::sum, pairs);
  }

  // Copies the value to every destination. Returns numbers unchanged. Throws AssertionError for a list of destinations
  // or none.
  Value broadcast_to(const Value& value, const Destinations& destinations);

  // Calls `function` once per component of the variable, in device order, in an update context in which the variable is
  // that component, with each argument's part. Grouped results are mirrored; ungrouped ones keep their structure with a
  // tuple of the components' results at each leaf, which has a single element if they are all the same object. May also
  // be called by all replicas in their replica contexts, as a merge_call.
  Value update(const std::shared_ptr<Variable>& variable, const UpdateFunction& function,
               const Value::Parts& arguments = {}, bool group = true);
  // TensorFlow's _replica_ctx_update, called by all replicas: each updates its own component of a mirrored variable
  // with its parts of the arguments, so that they issue their work side by side. Other variables get update().
  void replica_update(const std::shared_ptr<Variable>& variable, const UpdateFunction& function,
                      const Value::Parts& arguments = {});
  // Updates state that is not in a variable: calls `function` once on each of the devices that non_slot_devices()
  // returned.
  Value update_non_slot(const std::vector<Device*>& colocate_with, const NonSlotFunction& function,
                        const Value::Parts& arguments = {}, bool group = true);
  virtual std::vector<Device*> non_slot_devices(const std::vector<std::shared_ptr<Variable>>& variables);

  // Puts the variables that are created during the life of the result where `variable` is. Throws RuntimeError outside
  // this strategy's contexts and ValueError for a variable that was not created under it.
  [[nodiscard]] std::unique_ptr<VariableCreatorScope> colocate_vars_with(const std::shared_ptr<Variable>& variable);

  // Returns the variable of which a tensor is a component; returns any other value unchanged. May be called in any
  // context.
  Value value_container(const Value& value) const;
  bool variable_created_in_scope(const Variable& variable) const;
  // The variables created under this strategy. Those that nobody holds any more have expired.
  const std::vector<std::weak_ptr<Variable>>& variables() const { return variables_; }
  // The value of a variable in cross-replica context, where sync-on-read ones are aggregated.
  static Tensor read_var(Variable& variable) { return variable.read(); }

  // Notes a change of a variable in which this worker does not meet the others, who all have to make it.
  virtual void note_change(std::string_view /*call*/, const Variable& /*variable*/) {}

  // Calls `function` `iterations` times with the iterator's next elements and returns what it set last (see
  // MultiStepContext). Initial loop values must have the structure of the outputs (ValueError).
  MultiStepContext run_steps(const StepFunction& function, DistributedIterator& iterator, int iterations = 1,
                             const std::map<std::string, Value>& initial_loop_values = {});

 protected:
  Scope do_scope() override;
  // Adds a variable to variables().
  void note_variable(const std::shared_ptr<Variable>& variable);

 private:
  friend class Strategy;
  Strategy* strategy_ = nullptr;  // set by the Strategy that owns this
  std::vector<std::weak_ptr<Variable>> variables_;
};

}  // namespace tandem
