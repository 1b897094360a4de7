// tf.distribute.Strategy: how one training program runs on several devices.
//
// A Strategy is made inside a worker's program and lives there. Device work is asynchronous: calls return when it is
// issued, and results are tensors that later work on the same streams may use. Unless said otherwise calls are made in
// the strategy's cross-replica context (inside scope(), outside run()) or in the default state; other contexts are a
// RuntimeError.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/worker.h"
#include "strategies/base/context.h"
#include "strategies/base/options.h"
#include "strategies/base/strategy_extended.h"
#include "strategies/input/input_context.h"
#include "strategies/values/value.h"
#include "strategies/variables/variable.h"

namespace tandem {

class ClusterResolver;
class Dataset;
class DistributedDataset;

using DatasetFunction = std::function<Dataset(const InputContext& context)>;

// The axis or axes of Strategy::reduce; negative ones count from the end. A text is a TypeError, as in TensorFlow.
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
  // Where the cluster was learnt from; null for strategies of one worker.
  const ClusterResolver* cluster_resolver() const;

  // Makes this strategy current, in cross-replica context. RuntimeError inside another strategy's scope or in a replica
  // context. Entering one's own scope again is allowed.
  [[nodiscard]] Scope scope();

  // Calls `function` once per replica, in its replica context, with each argument's part, and regroups the results.
  // Replicas advance in order, one at a time, up to a merge_call or their end. The first exception is rethrown.
  Value run(const ReplicaFunction& function, const Value::Parts& arguments = {});

  // The values of all replicas combined. Without axes element-wise over the replicas; with them, also summed over those
  // axes inside each replica, where MEAN weighs every element alike. Nested values leaf by leaf. Numbers give a number,
  // tensors a tensor on the host's device. ValueError for SUM of a value that is the same object in several replicas.
  Value reduce(ReduceOp op, const Value& value, const std::optional<Axes>& axes = std::nullopt);
  Value reduce(std::string_view op, const Value& value, const std::optional<Axes>& axes = std::nullopt) {
    return reduce(reduce_op_from_name(op), value, axes);
  }

  // The replicas' tensors concatenated along `axis` in replica order, on the host's device; numbers count as one
  // element. A value that is not per replica is returned itself. Errors as in ReplicaContext::all_gather.
  Value gather(const Value& value, int axis);

  // One value per local replica; for a nested value its structure with each replica's parts.
  Value::Parts experimental_local_results(const Value& value) const;

  std::shared_ptr<Variable> create_variable(const VariableSpec& spec);

  // The dataset's batches are global: each is divided among the replicas (semantics of TensorFlow's rebatching).
  DistributedDataset experimental_distribute_dataset(const Dataset& dataset);
  DistributedDataset experimental_distribute_dataset(const Dataset& dataset, const InputOptions& options);
  // `function` is called once per input pipeline and batches by the replica's batch size itself.
  DistributedDataset distribute_datasets_from_function(const DatasetFunction& function);
  DistributedDataset distribute_datasets_from_function(const DatasetFunction& function, const InputOptions& options);

  // function(ValueContext) once per local replica, wrapped per replica even where the results are identical.
  Value experimental_distribute_values_from_function(const std::function<Value(const ValueContext&)>& function);

 private:
  friend class StrategyExtended;
  std::string name_;
  std::unique_ptr<StrategyExtended> extended_;
};

}  // namespace tandem
