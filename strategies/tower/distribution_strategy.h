// DistributionStrategy of TensorFlow 1.9 to 1.12, over the library's strategies.
//
// A DistributionStrategy is a handle of a Strategy: copies mean the same one, and == tells so. All work is the
// Strategy's; what differs are the names, the contexts that calls are allowed in, and what they refuse.
//
// Unless said otherwise calls are made in the strategy's own cross-tower context, inside scope() and outside towers:
// RuntimeError anywhere else, also outside every scope.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/base/strategy.h"
#include "strategies/cluster/cluster_spec.h"
#include "strategies/input/distributed_dataset_v1.h"
#include "strategies/tower/variables.h"

namespace tandem::tower {

class DistributionStrategy;
class MultiStepContext;

inline constexpr VariableAggregation kOnlyFirstTower = VariableAggregation::only_first_replica;

using TowerFunction = ReplicaFunction;
using StepFunction = std::function<void(MultiStepContext& context, const Value::Parts& inputs)>;
using MapFunction = std::function<Value(const Value& element, Device& device, const Value::Parts& arguments)>;
using FetchFunction = std::function<Value(const Tensor& value)>;

// Who this program is in its cluster. No task type and no id: not given.
struct ClusterTask {
  std::string type{};
  std::optional<int> id{};
};

class DistributionStrategy {
 public:
  // Any strategy of the library. Variables made under those that this API did not make keep the library's rules.
  explicit DistributionStrategy(Strategy& strategy) : strategy_(&strategy) {}
  explicit DistributionStrategy(std::shared_ptr<Strategy> strategy)
      : strategy_(strategy.get()), owner_(std::move(strategy)) {}
  DistributionStrategy(const DistributionStrategy&) = default;
  DistributionStrategy& operator=(const DistributionStrategy&) = default;
  virtual ~DistributionStrategy() = default;

  Strategy& strategy() const { return *strategy_; }
  bool operator==(const DistributionStrategy& other) const { return strategy_ == other.strategy_; }

  // Anywhere but inside another strategy and inside towers.
  [[nodiscard]] Scope scope() const;
  // ValueError, besides the library's, for a sync-on-read variable that is to be trainable.
  std::shared_ptr<Variable> create_variable(const VariableSpec& spec) const;

  // Calls `function` once per tower with each argument's part for the tower's device. Towers advance in order, one at a
  // time; `run_concurrently` allows more, and promises nothing.
  Value call_for_each_tower(const TowerFunction& function, const Value::Parts& arguments = {},
                            bool run_concurrently = true) const;

  // SUM, MEAN or ONLY_FIRST_TOWER of a value per device, mirrored on the destinations, of which a list may name
  // several; without destinations those of the value (1.10). AssertionError for NONE and for a mirrored value;
  // ValueError for SUM of one object in several towers, unless it is the number 0.
  Value reduce(VariableAggregation aggregation, const Value& value, const Destinations& destinations = {}) const;
  // 1.9: "sum" or "mean" of a value per device, or of any value where there is one tower (AssertionError otherwise).
  Value reduce(std::string_view method, const Value& value, const Destinations& destinations = {}) const;
  std::vector<Value> batch_reduce(VariableAggregation aggregation, const std::vector<ReducePair>& pairs) const;
  // Mirrored on the destinations, by default the worker devices. Strategies with one device give the value itself; the
  // default strategy refuses destinations (NotImplementedError).
  Value broadcast(const Value& value, const Destinations& destinations = {}) const;

  // Calls `function` once per component of a distributed variable (AssertionError for anything else), with the parts of
  // mirrored arguments (TypeError for per-device ones). Grouped: mirrored results; otherwise their structure with a
  // list of one result per component at each leaf.
  Value update(const Value& variable, const UpdateFunction& function, const Value::Parts& arguments = {},
               bool grouped = true) const;
  Value update_non_slot(const std::vector<Device*>& colocate_with, const NonSlotFunction& function,
                        const Value::Parts& arguments = {}, bool grouped = true) const;
  std::vector<Device*> non_slot_devices(const std::vector<std::shared_ptr<Variable>>& variables) const;
  // RuntimeError unless this strategy is current, in any of its contexts.
  [[nodiscard]] std::unique_ptr<VariableCreatorScope> colocate_vars_with(
      const std::shared_ptr<Variable>& variable) const;
  // 1.9: variables created during the life of the result are tower-local, combined by "sum" or "mean" (AssertionError
  // for another method) when read in cross-tower context. In the same contexts.
  [[nodiscard]] std::unique_ptr<VariableCreatorScope> tower_local_var_scope(std::string_view method) const;

  // Anywhere. The container of a component; any other value itself.
  Value value_container(const Value& value) const { return strategy_->extended().value_container(value); }
  // Anywhere. The parts: in the order of the worker devices where they are on exactly those, else by device text. Of
  // anything else the value itself.
  Value::Parts unwrap(const Value& value) const;
  // Anywhere. What is unwrapped, flat: one value as it is, several as a list. Their work has been issued already.
  Value group(const Value& value) const;
  // The variable's value, tower-local ones combined. Anywhere.
  Tensor read_var(Variable& variable) const { return StrategyExtended::read_var(variable); }
  // 1.9: function(value) on the destination, of a tower-local variable after it is combined, of a mirrored value from
  // its part there, or from another device's, copied afterwards. AssertionError for other values.
  Value fetch(const Value& value, const std::string& destination = "/device:CPU:0",
              const FetchFunction& function = {}) const;

  // Element k is mapped on device k mod n. Gives a list of results per device, which reduce() adds up.
  Value map(const Value::Parts& elements, const MapFunction& function, const Value::Parts& arguments = {}) const;

  // Anywhere. Whole elements are dealt to the devices: see distribute_dataset_v1.
  DistributedDatasetV1 distribute_dataset(const DatasetFunctionV1& function) const;
  DistributedIteratorV1 make_input_fn_iterator(const InputFunction& function,
                                               InputReplicationMode mode = InputReplicationMode::per_worker) const;
  // Calls `function` `iterations` times with the iterator's next elements, tuples opened, and returns what the last
  // iteration set. ValueError when loop values are given that are not the outputs'.
  MultiStepContext run_steps_on_dataset(const StepFunction& function, DistributedIteratorV1& iterator,
                                        int iterations = 1,
                                        const std::map<std::string, Value>& initial_loop_values = {}) const;

  int num_towers() const { return strategy_->num_replicas_in_sync(); }
  bool is_single_tower() const { return num_towers() == 1; }
  const std::vector<Device*>& worker_devices() const { return strategy_->extended().worker_devices(); }
  const std::vector<Device*>& parameter_devices() const { return strategy_->extended().parameter_devices(); }
  Value worker_device_index() const;  // each device's place among them

  // NotImplementedError for the default strategy and those of one device, as in 1.12.
  bool between_graph() const { return with_roles("between_graph").experimental_between_graph(); }
  bool should_init() const { return with_roles("should_init").experimental_should_init(); }
  bool should_checkpoint() const { return with_roles("should_checkpoint").should_checkpoint(); }
  bool should_save_summary() const { return with_roles("should_save_summary").should_save_summary(); }

  // Tells the strategy of its cluster, before it is used; strategies that make no difference ignore it.
  virtual void configure(const ClusterSpec& cluster, const ClusterTask& task = {});
  // Variables are initialised when they are created, and nothing is kept open.
  void initialize() const {}
  void finalize() const {}

 protected:
  void become(std::shared_ptr<Strategy> strategy);  // for configure(): work goes on with another strategy

 private:
  InputWorkers input_workers() const;
  bool is_direct() const;      // is every call a direct one?
  bool spans_workers() const;  // are there towers of other workers' programs?
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

// What a strategy of this API knows besides.
class TowerStrategy final : public Strategy {
 public:
  struct Settings {
    Release release = Release::v1_12;
    bool auto_shard_dataset = false;           // files are divided among the workers
    std::optional<bool> prefetch_on_device{};  // false: input stays on the host
  };
  TowerStrategy(std::string name, std::unique_ptr<StrategyExtended> extended, Settings settings)
      : Strategy(std::move(name), std::move(extended)), settings_(settings) {}
  const Settings& settings() const { return settings_; }

 private:
  Settings settings_;
};

// RuntimeError unless the strategy's own cross-tower context is current. `call` stands in the message.
void require_cross_tower_context(const Strategy& strategy, std::string_view call);
// RuntimeError unless the strategy is current.
void require_scope(const Strategy& strategy, std::string_view call);

}  // namespace tandem::tower
