#include "strategies/tower/strategies.h"

#include <fmt/format.h>

#include <algorithm>

#include "strategies/base/errors.h"
#include "strategies/cluster/run_cluster.h"
#include "strategies/cross_device/choose.h"
#include "strategies/servers/parameter_server.h"
#include "strategies/strategy/context.h"
#include "strategies/tower/tower_strategy.h"
#include "strategies/tower/values.h"
#include "strategies/types/mirrored.h"
#include "strategies/types/multi_worker_mirrored.h"

namespace tandem::tower {
namespace {

// The towers of one worker, before it knows about the others.
class CollectiveOfOneWorker : public MirroredExtended {
 public:
  using MirroredExtended::MirroredExtended;
  bool experimental_between_graph() const override { return true; }
};

// Reduces with an object of the program's.
class MirroredWithOps : public MirroredExtended {
 public:
  MirroredWithOps(Worker& worker, const ReplicatedSpec& spec, std::shared_ptr<CrossTowerOps> ops)
      : MirroredExtended(worker, spec), ops_(std::move(ops)) {}
  std::string cross_device_ops_name() const override { return "cross_tower_ops"; }

 protected:
  ReductionInFlight begin_reduction(ReduceOp op, const std::vector<ReducePair>& pairs,
                                    const CommunicationOptions& /*options*/) override {
    ReductionInFlight result;
    if (pairs.empty()) return result;
    const auto aggregation = op == ReduceOp::sum ? VariableAggregation::sum : VariableAggregation::mean;
    for (const Value& value : ops_->batch_reduce(aggregation, pairs)) {
      const bool is_on_one = value.is_distributed() && value.parts().size() == 1;
      result.values.push_back(is_on_one ? value.parts().front() : value);
    }
    return result;
  }

 private:
  std::shared_ptr<CrossTowerOps> ops_;
};

std::vector<Device*> default_devices(Worker& worker) {
  std::vector<Device*> gpus;
  for (Device* device : worker.devices()) {
    if (device->id().type == DeviceType::gpu) gpus.push_back(device);
  }
  return gpus.empty() ? std::vector<Device*>{&worker.cpu()} : gpus;
}

std::vector<Device*> devices_of(Worker& worker, const MirroredOptions& options) {
  if (options.num_gpus && options.num_gpus_per_worker) {
    throw ValueError("both num_gpus and num_gpus_per_worker: one of them is enough");
  }
  const std::optional<int> count = options.num_gpus ? options.num_gpus : options.num_gpus_per_worker;
  if (!options.devices) return count ? devices_by_number(worker, *count) : default_devices(worker);
  if (count) throw ValueError("both devices and a number of GPUs: one of them is enough");
  std::vector<std::string> names;
  for (const std::string& name : *options.devices) {
    names.push_back(canonical_device(name));
    if (std::find(names.begin(), names.end() - 1, names.back()) != names.end() - 1) {
      throw AssertionError(fmt::format("device {} is listed twice", names.back()));
    }
  }
  if (names.empty()) throw AssertionError("a strategy needs at least one device");
  std::vector<Device*> devices;
  devices.reserve(names.size());
  for (const std::string& name : names) devices.push_back(&device_named(worker, name));
  return devices;
}

bool are_of(const Worker& worker, const std::vector<Device*>& devices) {
  return std::all_of(devices.begin(), devices.end(),
                     [&worker](const Device* device) { return device->worker() == worker.index(); });
}

// Replaces "auto" by the choice that 1.12 makes for the devices.
void choose_cross_tower_ops(const Worker& worker, ReplicatedSpec& spec) {
  if (spec.cross_device_ops != "auto") return;
  if (!are_of(worker, spec.devices)) {
    spec.cross_device_ops = "reduction_to_one_device";  // 1.12 reduces over several workers through their hosts
    return;
  }
  const CrossDeviceChoice choice = choose_automatically_v1(worker, spec.devices);
  spec.cross_device_ops = option_name_of(choice.algorithm);
  if (choice.algorithm == CrossDeviceAlgorithm::hierarchical_copy) spec.packing = {.num_packs = choice.num_packs};
}

std::shared_ptr<Strategy> mirrored_on(Worker& worker, std::vector<Device*> devices, const MirroredOptions& options) {
  const auto* object = std::get_if<std::shared_ptr<CrossTowerOps>>(&options.cross_tower_ops);
  const auto* name = std::get_if<std::string>(&options.cross_tower_ops);
  ReplicatedSpec spec{
      .devices = std::move(devices), .cross_device_ops = name ? *name : "auto", .packing = options.packing};
  choose_cross_tower_ops(worker, spec);
  std::unique_ptr<StrategyExtended> extended;
  if (object && *object) {
    extended = std::make_unique<TowerExtended<MirroredWithOps>>(options.release, worker, std::move(spec), *object);
  } else {
    extended = std::make_unique<TowerExtended<MirroredExtended>>(options.release, worker, std::move(spec));
  }
  return std::make_shared<TowerStrategy>("mirrored", std::move(extended),
                                         TowerStrategy::Settings{.release = options.release,
                                                                 .auto_shard_dataset = options.auto_shard_dataset,
                                                                 .prefetch_on_device = options.prefetch_on_device});
}

// Returns the chief's tasks and then the workers', by index.
std::vector<DeviceId> training_tasks(const ClusterSpec& cluster) {
  std::vector<DeviceId> tasks;
  for (const std::string job : {"chief", "worker"}) {
    if (!cluster.has_job(job)) continue;
    for (const int task : cluster.task_indices(job)) tasks.push_back({.job = job, .task = task});
  }
  if (tasks.empty()) throw ValueError("the cluster has no chief and no worker");
  return tasks;
}

ClusterTask task_of(const ClusterResolver& resolver) {
  return {.type = resolver.task_type().value_or(""), .id = resolver.task_id()};
}

std::shared_ptr<const ClusterResolver> checked_resolver(std::shared_ptr<const ClusterResolver> resolver,
                                                        const Worker& worker) {
  if (!resolver) throw ValueError("a null pointer is no cluster resolver; leave it out, and call configure()");
  check_cluster_of_run(*resolver, worker);
  return resolver;
}

void check_task(const ClusterTask& task) {
  if (!task.type.empty() && task.id) return;
  throw ValueError("with a cluster, configure() needs the task type and the task id, too");
}

// Refuses a cluster and a task that are not those of the run.
void check_configured(const ClusterSpec& cluster, const ClusterTask& task, const Worker& worker) {
  check_cluster_of_run(cluster, task.type, task.id, worker, "the cluster of configure()");
}

std::shared_ptr<Strategy> collective_of_one(Worker& worker, std::optional<int> num_gpus, Release release) {
  std::vector<Device*> devices(worker.devices().begin(), worker.devices().end());
  if (num_gpus) devices = devices_by_number(worker, *num_gpus);
  ReplicatedSpec spec{.devices = std::move(devices)};
  return std::make_shared<TowerStrategy>(
      "collective_all_reduce", std::make_unique<TowerExtended<CollectiveOfOneWorker>>(release, worker, std::move(spec)),
      TowerStrategy::Settings{.release = release});
}

std::vector<Device*> some_devices(Worker& worker, std::optional<int> num_gpus) {
  return num_gpus ? devices_by_number(worker, *num_gpus) : std::vector<Device*>{};
}

}  // namespace

MirroredStrategy::MirroredStrategy(MirroredOptions options) : MirroredStrategy(worker_of_task(), std::move(options)) {}

MirroredStrategy::MirroredStrategy(Worker& worker, MirroredOptions options)
    : DistributionStrategy(mirrored_on(worker, devices_of(worker, options), options)),
      worker_(&worker),
      options_(std::move(options)) {}

void MirroredStrategy::configure(const ClusterSpec& cluster, const ClusterTask& task) {
  if (!cluster) return;
  const std::optional<int> num_gpus = options_.num_gpus ? options_.num_gpus : options_.num_gpus_per_worker;
  if (!num_gpus) throw ValueError("with a cluster, the number of GPUs per worker must be given");
  const std::vector<DeviceId> tasks = training_tasks(cluster);
  check_configured(cluster, task, *worker_);
  std::vector<Device*> devices;
  for (const DeviceId& one : tasks) {
    for (int i = 0; i < std::max(1, *num_gpus); ++i) {
      const DeviceType type = *num_gpus > 0 ? DeviceType::gpu : DeviceType::cpu;
      devices.push_back(&worker_->device({.job = one.job, .task = one.task, .type = type, .index = i}));
    }
  }
  become(mirrored_on(*worker_, std::move(devices), options_));
}

OneDeviceStrategy::OneDeviceStrategy(Worker& worker, const std::string& device)
    : DistributionStrategy(std::make_shared<tandem::OneDeviceStrategy>(worker, device_named(worker, device))) {}

CollectiveAllReduceStrategy::CollectiveAllReduceStrategy() : CollectiveAllReduceStrategy(worker_of_task()) {}

CollectiveAllReduceStrategy::CollectiveAllReduceStrategy(Worker& worker, std::optional<int> num_gpus_per_worker,
                                                         Release release)
    : DistributionStrategy(collective_of_one(worker, num_gpus_per_worker, release)),
      worker_(&worker),
      num_gpus_(num_gpus_per_worker),
      release_(release) {}

CollectiveAllReduceStrategy::CollectiveAllReduceStrategy(Worker& worker,
                                                         std::shared_ptr<const ClusterResolver> cluster_resolver,
                                                         std::optional<int> num_gpus_per_worker, Release release)
    : CollectiveAllReduceStrategy(worker, num_gpus_per_worker, release) {
  cluster_resolver_ = checked_resolver(std::move(cluster_resolver), worker);
  configure(cluster_resolver_->cluster_spec(), task_of(*cluster_resolver_));
}

void CollectiveAllReduceStrategy::configure(const ClusterSpec& cluster, const ClusterTask& task) {
  if (!cluster || is_configured_) return;
  check_task(task);
  if (task.type != "chief" && task.type != "worker") {
    throw ValueError(fmt::format("task type '{}': a collective all-reduce has tasks chief and worker", task.type));
  }
  training_tasks(cluster);  // throws where there are none
  check_configured(cluster, task, *worker_);
  ReplicatedSpec spec{.devices = worker_devices(),
                      .group = num_gpus_ ? first_devices_in_sync(*worker_, *num_gpus_) : devices_in_sync(*worker_)};
  become(std::make_shared<TowerStrategy>("collective_all_reduce",
                                         std::make_unique<TowerExtended<MultiWorkerMirroredExtended>>(
                                             release_, *worker_, std::move(spec), cluster_resolver_),
                                         TowerStrategy::Settings{.release = release_}));
  is_configured_ = true;
}

ParameterServerStrategy::ParameterServerStrategy() : ParameterServerStrategy(worker_of_task()) {}

ParameterServerStrategy::ParameterServerStrategy(Worker& worker, std::optional<int> num_gpus_per_worker)
    : DistributionStrategy(
          std::make_shared<tandem::ParameterServerStrategy>(worker, some_devices(worker, num_gpus_per_worker))),
      worker_(&worker) {}

ParameterServerStrategy::ParameterServerStrategy(Worker& worker,
                                                 const std::shared_ptr<const ClusterResolver>& cluster_resolver,
                                                 std::optional<int> num_gpus_per_worker)
    : DistributionStrategy(std::make_shared<tandem::ParameterServerStrategy>(
          worker, some_devices(worker, num_gpus_per_worker),
          ParameterServerOptions{.cluster_resolver = checked_resolver(cluster_resolver, worker)})),
      worker_(&worker) {
  configure(cluster_resolver->cluster_spec(), task_of(*cluster_resolver));
}

void ParameterServerStrategy::configure(const ClusterSpec& cluster, const ClusterTask& task) {
  if (!cluster || is_configured_) return;
  check_task(task);
  if (!cluster.has_job("ps") || cluster.num_tasks("ps") == 0) throw ValueError("the cluster has no ps task");
  check_configured(cluster, task, *worker_);
  is_configured_ = true;
}

}  // namespace tandem::tower
