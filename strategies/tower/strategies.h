// The strategies of TensorFlow 1's contrib.distribute: how they are made and told of their cluster.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "strategies/base/options.h"
#include "strategies/one_device.h"
#include "strategies/tower/distribution_strategy.h"

namespace tandem::tower {

struct MirroredOptions {
  std::optional<std::vector<std::string>> devices{};     // by name; at least one, each once (AssertionError)
  std::optional<int> num_gpus{}, num_gpus_per_worker{};  // either: GPU:0 and so on, for 0 CPU:0
  std::string cross_tower_ops = "auto";                  // choose_automatically_v1, or see make_cross_device_ops
  Packing packing{};
  std::optional<bool> prefetch_on_device{};  // false: input stays on the host
  bool auto_shard_dataset = false;
  Release release = Release::v1_12;
};

// Towers on the devices of one worker, or of several that one program drives; by default on all of this worker's GPUs,
// or on CPU:0 where it has none. ValueError for more than one of devices, num_gpus and num_gpus_per_worker.
class MirroredStrategy final : public DistributionStrategy {
 public:
  explicit MirroredStrategy(Worker& worker, MirroredOptions options = {});
  // On the devices of every chief and worker of the cluster; the program runs on one of them. ValueError where the
  // number of GPUs per worker was not given, and for a cluster without such tasks.
  void configure(const ClusterSpec& cluster, const ClusterTask& task = {}) override;

 private:
  Worker* worker_;
  MirroredOptions options_;
};

// One tower, on the device of this name ("/device:CPU:0").
class OneDeviceStrategy final : public DistributionStrategy {
 public:
  OneDeviceStrategy(Worker& worker, const std::string& device);
};

// Towers on all workers, each of which runs the program. Before configure() those of this worker only.
class CollectiveAllReduceStrategy final : public DistributionStrategy {
 public:
  // On all of this worker's devices, or on GPU:0 and so on as MirroredOptions::num_gpus.
  explicit CollectiveAllReduceStrategy(Worker& worker, std::optional<int> num_gpus_per_worker = std::nullopt,
                                       Release release = Release::v1_12);
  // ValueError: no task type or id, a type other than chief and worker, a cluster without such tasks or with another
  // number of them than there are, another number of devices than the worker's. A second cluster is ignored.
  void configure(const ClusterSpec& cluster, const ClusterTask& task = {}) override;

 private:
  Worker* worker_;
  std::optional<int> num_gpus_;
  Release release_;
  bool is_configured_ = false;
};

// Variables on the tasks of the job "ps"; workers do not wait for each other. num_towers() counts this worker's.
class ParameterServerStrategy final : public DistributionStrategy {
 public:
  // On all of this worker's devices, or on GPU:0 and so on as MirroredOptions::num_gpus.
  explicit ParameterServerStrategy(Worker& worker, std::optional<int> num_gpus_per_worker = std::nullopt);
  // ValueError: no task type or id, no ps task. A second cluster is ignored. Which workers there are, and who this one
  // is, the engine has said already.
  void configure(const ClusterSpec& cluster, const ClusterTask& task = {}) override;

 private:
  bool is_configured_ = false;
};

// GPU:0 ... of this worker, or CPU:0 for none.
std::vector<Device*> devices_by_number(Worker& worker, int num_gpus);

}  // namespace tandem::tower
