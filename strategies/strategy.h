// tf.distribute.Strategy and StrategyExtended: how one training program runs on several devices.
//
// A Strategy is made inside a worker's program and lives there. Device work is asynchronous: calls return when it is
// issued, and results are tensors that later work on the same streams may use. Unless said otherwise calls are made in
// the strategy's cross-replica context (inside scope(), outside run()) or in the default state; other contexts are a
// RuntimeError.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/worker.h"
#include "strategies/context.h"
#include "strategies/cross_device_ops.h"
#include "strategies/options.h"
#include "strategies/value.h"
#include "strategies/variable.h"

namespace tandem {

class DistributedDataset;
class Dataset;
class StrategyExtended;

using ReplicaFunction = std::function<Value(const Value::Parts& arguments)>;

// The life of the object is the scope.
using Scope = std::unique_ptr<ModeGuard>;

class Strategy {
 public:
  explicit Strategy(std::string name, std::unique_ptr<StrategyExtended> extended);
  virtual ~Strategy();
  Strategy(const Strategy&) = delete;
  Strategy& operator=(const Strategy&) = delete;

  const std::string& name() const { return name_; }
  StrategyExtended& extended() { return *extended_; }
  int num_replicas_in_sync() const;

  // Makes this strategy current, in cross-replica context. RuntimeError inside another strategy's scope or in a replica
  // context. Entering one's own scope again is allowed.
  [[nodiscard]] Scope scope();

  // Calls `function` once per replica, in its replica context, with each argument's part, and regroups the results.
  // Replicas advance in order, one at a time, up to a merge_call or their end. The first exception is rethrown.
  Value run(const ReplicaFunction& function, const Value::Parts& arguments = {});

  // The values of all replicas combined. Without `axis` element-wise over the replicas; with it, also summed over that
  // axis inside each replica, where MEAN weighs every element alike. Numbers give a number, tensors a tensor on the
  // host's device. ValueError for SUM of a value that is the same object in several replicas.
  Value reduce(ReduceOp op, const Value& value, std::optional<int> axis = std::nullopt);

  // One value per local replica.
  Value::Parts experimental_local_results(const Value& value) const;

  std::shared_ptr<Variable> create_variable(const VariableSpec& spec);

  // The dataset's batches are global: each is divided among the replicas (semantics of TensorFlow's rebatching).
  DistributedDataset experimental_distribute_dataset(Dataset dataset);

 private:
  std::string name_;
  std::unique_ptr<StrategyExtended> extended_;
};

class StrategyExtended {
 public:
  virtual ~StrategyExtended() = default;
  virtual int num_replicas() const = 0;
  virtual const std::vector<Device*>& worker_devices() const = 0;  // in replica order
  virtual const std::vector<Device*>& parameter_devices() const = 0;
  virtual Worker& worker() const = 0;

  virtual Value call_for_each_replica(Strategy& strategy, const ReplicaFunction& function,
                                      const Value::Parts& arguments) = 0;
  // A value per replica combined and mirrored on all of the strategy's devices.
  virtual Value all_reduce(ReduceOp op, const Value& value) = 0;
  // Combined on one device.
  virtual Value reduce_to(ReduceOp op, const Value& value, Device& destination) = 0;
  // A list of tensors per replica, combined in place (see ReplicaContext::all_reduce_async), and when that ends.
  virtual void begin_all_reduce(ReduceOp op, const Value& tensors) = 0;
  virtual Event all_reduce_end(int replica) const = 0;
  // Calls `function` once per component of the variable, in device order, in an update context, with the component's
  // tensor and each argument's part. Device work it issues on the component's compute stream is the update.
  virtual void update(Strategy& strategy, Variable& variable,
                      const std::function<void(const Tensor& component, const Value::Parts& arguments)>& function,
                      const Value::Parts& arguments) = 0;
  virtual std::string cross_device_ops_name() const = 0;
};

}  // namespace tandem
