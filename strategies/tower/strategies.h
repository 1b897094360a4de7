// The strategies of TensorFlow 1's contrib.distribute: how they are constructed, and configured for a cluster.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "strategies/base/options.h"
#include "strategies/cluster/cluster_resolver.h"
#include "strategies/tower/cross_tower_ops.h"
#include "strategies/tower/devices.h"
#include "strategies/tower/distribution_strategy.h"
#include "strategies/tower/variables.h"
#include "strategies/types/one_device.h"

namespace tandem::tower {

// By name: "auto" is choose_automatically_v1, for others see make_cross_device_ops. Or an object that reduces whatever
// these towers reduce; a null pointer is "auto".
using CrossTowerOpsChoice = std::variant<std::string, std::shared_ptr<CrossTowerOps>>;

struct MirroredOptions {
  std::optional<std::vector<std::string>> devices{};     // by name; at least one, none twice (AssertionError)
  std::optional<int> num_gpus{}, num_gpus_per_worker{};  // at most one of them: GPU:0 and so on, for 0 CPU:0
  CrossTowerOpsChoice cross_tower_ops = "auto";
  Packing packing{};
  std::optional<bool> prefetch_on_device{};  // false: leave input on the host
  bool auto_shard_dataset = false;           // divide input files among the workers
  Release release = Release::v1_12;
};

// Has a tower on each device of one worker, or of several workers that one program drives; by default on all of this
// worker's GPUs, or on CPU:0 if it has none. ValueError for more than one of devices, num_gpus and num_gpus_per_worker.
class MirroredStrategy final : public DistributionStrategy {
 public:
  // On the worker whose program the calling task runs (RuntimeError outside a program), as the other constructors
  // without a worker.
  explicit MirroredStrategy(MirroredOptions options = {});
  explicit MirroredStrategy(Worker& worker, MirroredOptions options = {});
  // Moves to the devices of every chief and worker of the cluster; the program runs on one of them. There "auto"
  // reduces to one device, since collectives need a program on every worker. ValueError when the number of GPUs per
  // worker was not given, for a cluster without such tasks or with others than the run, and when cross_tower_ops names
  // a collective.
  void configure(const ClusterSpec& cluster, const ClusterTask& task = {}) override;

 private:
  Worker* worker_;
  MirroredOptions options_;
};

// Has one tower, on the device of this name ("/device:CPU:0").
class OneDeviceStrategy final : public DistributionStrategy {
 public:
  OneDeviceStrategy(Worker& worker, const std::string& device);
};

// Has towers on all workers, each of which runs the program; before configure() on this worker only.
class CollectiveAllReduceStrategy final : public DistributionStrategy {
 public:
  // Uses GPU:0 and so on of each worker, for 0 its CPU:0; for nullopt, which TensorFlow does not have, all of its
  // compute devices, whatever they are.
  CollectiveAllReduceStrategy();
  explicit CollectiveAllReduceStrategy(Worker& worker, std::optional<int> num_gpus_per_worker = 0,
                                       Release release = Release::v1_12);
  // As TensorFlow 1.14: configured with the resolver's cluster and task, unless it describes none. The resolver is then
  // what strategy().cluster_resolver() returns.
  CollectiveAllReduceStrategy(Worker& worker, std::shared_ptr<const ClusterResolver> cluster_resolver,
                              std::optional<int> num_gpus_per_worker = 0, Release release = Release::v1_12);
  // ValueError for a missing task type or id, a type other than chief and worker, a cluster without such tasks, and for
  // tasks other than those of the run (cluster/run_cluster.h). A second cluster is ignored.
  void configure(const ClusterSpec& cluster, const ClusterTask& task = {}) override;

 private:
  Worker* worker_;
  std::shared_ptr<const ClusterResolver> cluster_resolver_;
  std::optional<int> num_gpus_;
  Release release_;
  bool is_configured_ = false;
};

// Keeps variables on the tasks of the job "ps"; workers do not wait for each other. num_towers() counts this worker's.
class ParameterServerStrategy final : public DistributionStrategy {
 public:
  // Computes on GPU:0 and so on, for 0 on CPU:0; for nullopt, which TensorFlow does not have, on all compute devices of
  // this worker, whatever they are.
  ParameterServerStrategy();
  explicit ParameterServerStrategy(Worker& worker, std::optional<int> num_gpus_per_worker = 0);
  // As TensorFlow 1.14: configured with the resolver's cluster and task, unless it describes none. The resolver is what
  // strategy().cluster_resolver() returns.
  ParameterServerStrategy(Worker& worker, const std::shared_ptr<const ClusterResolver>& cluster_resolver,
                          std::optional<int> num_gpus_per_worker = 0);
  // ValueError for a missing task type or id, for a cluster without ps tasks, and for tasks other than those of the run
  // (cluster/run_cluster.h): the engine already knows which tasks there are and which of them this is. A second cluster
  // is ignored.
  void configure(const ClusterSpec& cluster, const ClusterTask& task = {}) override;

 private:
  Worker* worker_;
  bool is_configured_ = false;
};

}  // namespace tandem::tower
