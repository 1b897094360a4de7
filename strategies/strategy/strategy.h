// tf.distribute.Strategy: how one training program runs on several devices.
//
// A Strategy is made inside a worker's program and lives there. Device work is asynchronous: calls return when it is
// issued, and results are tensors that later work on the same streams may use. Unless a call says otherwise it is made
// in the strategy's cross-replica context (inside scope(), outside run()) or in the default state; in any other context
// it throws RuntimeError.
//
// Threads: the tasks of one worker's program, one at a time; run() lets only one replica go on at a time. The functions
// that a ClusterCoordinator schedules may use their strategy at the same time.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/worker.h"
#include "strategies/base/options.h"
#include "strategies/input/input_context.h"
#include "strategies/strategy/context.h"
#include "strategies/strategy/strategy_extended.h"
#include "strategies/values/value.h"
#include "strategies/variables/variable.h"

namespace tandem {

class ClusterResolver;
class Dataset;
class DistributedDataset;
class DistributedIteratorV1;

using DatasetFunction = std::function<Dataset(const InputContext& context)>;

// The axis or axes of Strategy::reduce; negative ones count from the end.
class Axes {
 public:
  Axes(int axis) : axes_({axis}) {}                        // NOLINT(google-explicit-constructor)
  Axes(std::vector<int> axes) : axes_(std::move(axes)) {}  // NOLINT(google-explicit-constructor)
  Axes(std::initializer_list<int> axes) : axes_(axes) {}
  const std::vector<int>& list() const { return axes_; }

 private:
  std::vector<int> axes_;
};

class Strategy {
 public:
  Strategy(std::string name, std::unique_ptr<StrategyExtended> extended);
  virtual ~Strategy();
  Strategy(const Strategy&) = delete;
  Strategy& operator=(const Strategy&) = delete;

  const std::string& name() const { return name_; }
  StrategyExtended& extended() { return *extended_; }
  const StrategyExtended& extended() const { return *extended_; }
  int num_replicas_in_sync() const;
  // The resolver that the strategy was given, or else one made of the run's cluster. Null for the strategies whose
  // replicas and variables are on one worker: Mirrored, OneDevice, CentralStorage and the default one.
  const ClusterResolver* cluster_resolver() const;

  // Makes this strategy current, in cross-replica context, for the life of the result. Throws RuntimeError inside
  // another strategy's scope and in a replica context. May be entered again inside its own scope.
  [[nodiscard]] Scope scope();

  // Calls `function` once per replica, in its replica context, with each argument's part, and regroups the results.
  // Replicas advance in order, one at a time, up to a merge_call or their end. Rethrows the first exception of a
  // replica. Throws ValueError for an argument with fewer or more parts than this worker has replicas.
  Value run(const ReplicaFunction& function, const Value::Parts& arguments = {});

  // Combines the values of all replicas, each leaf of a nested value by itself: element-wise, and with axes also over
  // those axes inside each replica, where MEAN weighs every element alike. Numbers give a number, tensors a tensor on
  // the host's device. Throws ValueError for SUM of one object that several replicas share.
  Value reduce(ReduceOp op, const Value& value, const std::optional<Axes>& axes = std::nullopt);
  Value reduce(std::string_view op, const Value& value, const std::optional<Axes>& axes = std::nullopt) {
    return reduce(reduce_op_from_name(op), value, axes);
  }

  // Concatenates the replicas' tensors along `axis` in replica order, on the host's device; numbers count as one
  // element. Returns a value that is not per replica unchanged. Throws as ReplicaContext::all_gather does.
  Value gather(const Value& value, int axis);

  // Returns one value per local replica: for a nested value its structure with that replica's parts, for a variable
  // with a component per device that component's value. A value that is neither distributed nor nested comes once. May
  // be called in any context.
  Value::Parts experimental_local_results(const Value& value) const;

  // Creates a variable where this strategy keeps its variables. May also be called in a replica context, by all
  // replicas in the same order.
  std::shared_ptr<Variable> create_variable(const VariableSpec& spec);

  // Divides the dataset's batches, which are global, among the replicas as TensorFlow's rebatching does.
  DistributedDataset experimental_distribute_dataset(const Dataset& dataset);
  DistributedDataset experimental_distribute_dataset(const Dataset& dataset, const InputOptions& options);
  // Calls `function` once per input pipeline; it batches by the replica's batch size itself.
  DistributedDataset distribute_datasets_from_function(const DatasetFunction& function);
  DistributedDataset distribute_datasets_from_function(const DatasetFunction& function, const InputOptions& options);

  // TensorFlow 1's form of experimental_distribute_dataset: an iterator that can be initialised again.
  DistributedIteratorV1 make_dataset_iterator(const Dataset& dataset);

  // TensorFlow 1's forms with an input function, called once for this worker's input pipeline: see
  // input/distributed_dataset_v1.h.
  DistributedIteratorV1 make_input_fn_iterator(const InputFunction& function,
                                               InputReplicationMode mode = InputReplicationMode::per_worker);

  // Calls `function` once per local replica and wraps the results per replica, even where they are one object or where
  // there is one replica. The strategies that always have one, OneDevice and the default one, return it bare.
  Value experimental_distribute_values_from_function(const std::function<Value(const ValueContext&)>& function);

 private:
  friend class StrategyExtended;
  std::string name_;
  std::unique_ptr<StrategyExtended> extended_;
};

}  // namespace tandem
