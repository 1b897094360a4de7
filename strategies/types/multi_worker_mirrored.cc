#include "strategies/types/multi_worker_mirrored.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "engine/purpose.h"
#include "strategies/base/errors.h"
#include "strategies/cluster/run_cluster.h"
#include "strategies/strategy/context.h"

namespace tandem {
namespace {

std::vector<WorkerSpec> training_workers(const Worker& worker) {
  std::vector<WorkerSpec> training;
  for (const WorkerSpec& spec : worker.cluster()) {
    if (spec.job != "ps" && spec.job != "evaluator") training.push_back(spec);
  }
  const auto comes_first = [](const WorkerSpec& a, const WorkerSpec& b) {
    return std::make_tuple(a.job != "chief", a.task) < std::make_tuple(b.job != "chief", b.task);
  };
  if (!std::ranges::is_sorted(training, comes_first)) std::ranges::stable_sort(training, comes_first);
  return training;
}

ReplicatedSpec spec_of(Worker& worker, const MultiWorkerOptions& options) {
  if (!options.devices.empty()) {
    if (options.cluster_resolver) throw ValueError("cluster_resolver and devices cannot be set at the same time");
    return {.devices = options.devices, .packing = options.packing, .communication = options.communication};
  }
  check_chiefs_of_run(worker);
  for (const WorkerSpec& spec : training_workers(worker)) {
    if (spec.device_count != static_cast<int>(worker.devices().size())) {
      throw ValueError(fmt::format("{} {} has {} devices and {} {} has {}: all workers need as many", spec.job,
                                   spec.task, spec.device_count, worker.job(), worker.task(), worker.devices().size()));
    }
  }
  return {.devices = {worker.devices().begin(), worker.devices().end()},
          .packing = options.packing,
          .group = devices_in_sync(worker),
          .communication = options.communication};
}

// With devices of this worker alone, other tasks take no part.
std::shared_ptr<const ClusterResolver> resolver_of(const Worker& worker, const MultiWorkerOptions& options) {
  return options.devices.empty() ? checked_resolver(worker, options.cluster_resolver) : resolver_of_run(worker);
}

}  // namespace

std::vector<DeviceId> devices_in_sync(Worker& worker) {
  std::vector<DeviceId> group;
  group.reserve(worker.cluster().size() * worker.devices().size());
  for (const WorkerSpec& spec : training_workers(worker)) {
    for (int i = 0; i < spec.device_count; ++i) {
      group.push_back({.job = spec.job, .task = spec.task, .type = spec.device_type, .index = i});
    }
  }
  return group;
}

MultiWorkerMirroredExtended::MultiWorkerMirroredExtended(Worker& worker, const MultiWorkerOptions& options)
    : MirroredExtended(worker, spec_of(worker, options)), cluster_resolver_(resolver_of(worker, options)) {}

MultiWorkerMirroredExtended::MultiWorkerMirroredExtended(Worker& worker, const ReplicatedSpec& spec,
                                                         std::shared_ptr<const ClusterResolver> cluster_resolver)
    : MirroredExtended(worker, spec),
      cluster_resolver_(resolver_of(worker, {.cluster_resolver = std::move(cluster_resolver)})) {}

std::shared_ptr<Variable> MultiWorkerMirroredExtended::make_variable(const VariableSpec& spec) {
  std::shared_ptr<Variable> variable = MirroredExtended::make_variable(spec);
  std::vector<Stream*> streams;
  for (Device* device : worker_devices()) streams.push_back(&device->compute_stream());
  const CallPurpose noted([&] {
    return fmt::format("the creation of variable '{}' {}{}", canonical_name(spec.name), name_of(spec.dtype),
                       spec.shape.text());
  });
  const MeetingOfWorkers meeting(unmet_changes());
  if (in_sync_ == nullptr) in_sync_ = &worker().communicator(group());
  in_sync_->broadcast(variable->components(), 0, streams);
  return variable;
}

MultiWorkerMirroredStrategy::MultiWorkerMirroredStrategy(const MultiWorkerOptions& options)
    : MultiWorkerMirroredStrategy(worker_of_task(), options) {}

MultiWorkerMirroredStrategy::MultiWorkerMirroredStrategy(Worker& worker, const MultiWorkerOptions& options)
    : Strategy("multi_worker_mirrored", std::make_unique<MultiWorkerMirroredExtended>(worker, options)) {}

}  // namespace tandem
