// DistributionStrategy of TensorFlow 1.9 to 1.12, over the library's strategies.
//
// A DistributionStrategy is a handle to a Strategy, which does all the work: copies refer to the same strategy and
// compare equal. This API differs in names, in the contexts in which calls are allowed, and in what calls refuse.
//
// Unless a comment says otherwise, calls must be made in the strategy's own cross-tower context, that is inside scope()
// and outside towers; anywhere else they throw RuntimeError.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/cluster/cluster_spec.h"
#include "strategies/input/distributed_dataset_v1.h"
#include "strategies/strategy/strategy.h"
#include "strategies/tower/functions.h"

namespace tandem::tower {

class MultiStepContext;

inline constexpr VariableAggregation kOnlyFirstTower = VariableAggregation::only_first_replica;

// The task of the cluster that this program is. An empty type and no id mean that it is not known.
struct ClusterTask {
  std::string type{};
  std::optional<int> id{};
};

class DistributionStrategy {
 public:
  // Wraps any strategy of the library. Variables created under a strategy that this API did not make keep the library's
  // rules.
  explicit DistributionStrategy(Strategy& strategy) : strategy_(&strategy) {}
  explicit DistributionStrategy(std::shared_ptr<Strategy> strategy)
      : strategy_(strategy.get()), owner_(std::move(strategy)) {}
  DistributionStrategy(const DistributionStrategy&) = default;
  DistributionStrategy& operator=(const DistributionStrategy&) = default;
  virtual ~DistributionStrategy() = default;

  Strategy& strategy() const { return *strategy_; }
  bool operator==(const DistributionStrategy& other) const { return strategy_ == other.strategy_; }

  // Makes the strategy current. May be called anywhere except inside another strategy's scope and inside towers.
  [[nodiscard]] Scope scope() const;
  // ValueError for a trainable sync-on-read variable, and where Strategy::create_variable throws it.
  std::shared_ptr<Variable> create_variable(const VariableSpec& spec) const;

  // Calls `function` once per tower with each argument's part for the tower's device. Towers advance in order, one at a
  // time, whatever `run_concurrently` says: in TensorFlow it allows more and promises nothing.
  Value call_for_each_tower(const TowerFunction& function, const Value::Parts& arguments = {},
                            bool run_concurrently = true) const;

  // Reduces a value per device by SUM, MEAN or ONLY_FIRST_TOWER and mirrors the result on the destinations, which are
  // by default the value's devices (1.10). Integers stay integers, also their mean, which is rounded down.
  // AssertionError for NONE and for a mirrored value; ValueError for SUM of one object in several towers, unless it is
  // the number 0.
  Value reduce(VariableAggregation aggregation, const Value& value, const Destinations& destinations = {}) const;
  // 1.9: takes "sum" or "mean" (AssertionError for another text), and a value per device or, with a single tower, any
  // value (AssertionError otherwise).
  Value reduce(std::string_view method, const Value& value, const Destinations& destinations = {}) const;
  // Returns one result for each pair, in order.
  std::vector<Value> batch_reduce(VariableAggregation aggregation, const std::vector<ReducePair>& pairs) const;
  std::vector<Value> batch_reduce(std::string_view method, const std::vector<ReducePair>& pairs) const;  // 1.9
  // Mirrors the value on the destinations, by default the worker devices. Strategies of one device return the value
  // itself; the default strategy refuses destinations (NotImplementedError).
  Value broadcast(const Value& value, const Destinations& destinations = {}) const;

  // Calls `function` once per component of a distributed variable (AssertionError for anything else), with the parts of
  // mirrored arguments (TypeError for per-device ones). Grouped results are mirrored; ungrouped ones keep their
  // structure with a list of one result per component at each leaf.
  Value update(const Value& variable, const UpdateFunction& function, const Value::Parts& arguments = {},
               bool grouped = true) const;
  Value update_non_slot(const std::vector<Device*>& colocate_with, const NonSlotFunction& function,
                        const Value::Parts& arguments = {}, bool grouped = true) const;
  std::vector<Device*> non_slot_devices(const std::vector<std::shared_ptr<Variable>>& variables) const;
  // Variables created during the lifetime of the result are placed with `variable`, or on the devices that
  // non_slot_devices() returned. May be called in any context of this strategy (RuntimeError elsewhere). ValueError for
  // devices that a variable of this strategy cannot be on: mirrored variables are on all of its devices, stored ones
  // where another variable is.
  [[nodiscard]] std::unique_ptr<VariableCreatorScope> colocate_vars_with(
      const std::shared_ptr<Variable>& variable) const;
  [[nodiscard]] std::unique_ptr<VariableCreatorScope> colocate_vars_with(const std::vector<Device*>& devices) const;
  // 1.9: variables created during the lifetime of the result are tower-local and combined by "sum" or "mean"
  // (AssertionError for another method) when they are read in cross-tower context. In the same contexts.
  [[nodiscard]] std::unique_ptr<VariableCreatorScope> tower_local_var_scope(std::string_view method) const;

  // Returns the container of a component, any other value itself. May be called anywhere.
  Value value_container(const Value& value) const { return strategy_->extended().value_container(value); }
  // Returns the parts of a distributed value in the order of the worker devices when they are on exactly these, and
  // otherwise in the order of the device texts; any other value itself. May be called anywhere.
  Value::Parts unwrap(const Value& value) const;
  // Returns the unwrapped value flat: a single one as it is, several as a list. In TensorFlow the result is an op that
  // runs them; here their work has been issued already. May be called anywhere.
  Value group(const Value& value) const;
  // Returns a variable's value, for a tower-local one the combined value. May be called anywhere.
  Tensor read_var(Variable& variable) const { return StrategyExtended::read_var(variable); }
  // 1.9: returns function(value) on the destination. A tower-local variable is combined first; of a mirrored value the
  // function gets the part on the destination, or else the first part, and its result is copied. AssertionError for
  // other values.
  Value fetch(const Value& value, const std::string& destination = "/device:CPU:0",
              const FetchFunction& function = {}) const;

  // Maps element k on device k mod n. Returns a list of results per device, which reduce() adds up.
  Value map(const Value::Parts& elements, const MapFunction& function, const Value::Parts& arguments = {}) const;

  // Deals whole elements to the devices: see distribute_dataset_v1. Each worker has an input pipeline of its own, also
  // where this program drives the devices of all of them. May be called anywhere.
  DistributedDatasetV1 distribute_dataset(const DatasetFunctionV1& function) const;
  DistributedDatasetV1 distribute_dataset(const Dataset& dataset) const;  // the same for each pipeline
  DistributedIteratorV1 make_input_fn_iterator(const InputFunction& function,
                                               InputReplicationMode mode = InputReplicationMode::per_worker) const;
  // Calls `function` `iterations` times with the iterator's next elements, tuples opened, and returns what the last
  // iteration set; with 0 iterations the initial loop values. ValueError when initial loop values are given whose
  // names, nesting and numbers of elements are not those of the outputs, where a value per device counts as the list
  // that unwrap() makes of it.
  MultiStepContext run_steps_on_dataset(const StepFunction& function, DistributedIteratorV1& iterator,
                                        int iterations = 1,
                                        const std::optional<Value::Fields>& initial_loop_values = std::nullopt) const;

  int num_towers() const { return strategy_->num_replicas_in_sync(); }
  bool is_single_tower() const { return num_towers() == 1; }
  const std::vector<Device*>& worker_devices() const { return strategy_->extended().worker_devices(); }
  const std::vector<Device*>& parameter_devices() const { return strategy_->extended().parameter_devices(); }
  // Returns each worker device's index among them, an integer per device.
  Value worker_device_index() const;

  // NotImplementedError for the default strategy and strategies of one device, as in 1.12.
  bool between_graph() const { return with_roles("between_graph").experimental_between_graph(); }
  bool should_init() const { return with_roles("should_init").experimental_should_init(); }
  bool should_checkpoint() const { return with_roles("should_checkpoint").should_checkpoint(); }
  bool should_save_summary() const { return with_roles("should_save_summary").should_save_summary(); }

  // Tells the strategy which cluster it is in, before it is used. Strategies for which that makes no difference ignore
  // it.
  virtual void configure(const ClusterSpec& cluster, const ClusterTask& task = {});
  // Both do nothing: variables are initialised when they are created, and nothing is kept open.
  void initialize() const {}
  void finalize() const {}

 protected:
  // For configure(): makes this a handle to another strategy.
  void become(std::shared_ptr<Strategy> strategy);

 private:
  std::vector<InputWorkers> input_workers() const;  // one for each worker whose devices this program drives
  bool is_direct() const;                           // whether calls are ordinary calls on the only device
  bool spans_workers() const;                       // whether other programs' towers are in sync with these
  StrategyExtended& with_roles(std::string_view name) const;
  Value reduced(VariableAggregation aggregation, const Value& value, const Destinations& destinations) const;
  Value reduced_directly(VariableAggregation aggregation, const Value& value) const;
  Value reduced_shared(VariableAggregation aggregation, const Value& value, const std::vector<Device*>& on) const;
  Value reduced_parts(ReduceOp op, const Value& value, const std::vector<Device*>& on) const;
  Value reduced_map_output(ReduceOp op, const Value& lists, const std::vector<Device*>& on) const;
  Value broadcast_first(const Value& value, const std::vector<Device*>& on) const;

  Strategy* strategy_;
  std::shared_ptr<Strategy> owner_;
};

}  // namespace tandem::tower
