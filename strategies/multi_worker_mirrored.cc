#include "strategies/multi_worker_mirrored.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "strategies/base/errors.h"
#include "strategies/cluster/simple_resolver.h"

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

// Makes a resolver of the engine's cluster. Its workers have no network addresses, so job and task are used in their
// place.
std::shared_ptr<const ClusterResolver> resolver_of(const Worker& worker) {
  std::map<std::string, std::map<int, std::string>> addresses;
  for (const WorkerSpec& spec : worker.cluster())
    addresses[spec.job][spec.task] = fmt::format("{}{}", spec.job, spec.task);
  std::map<std::string, JobTasks> jobs;
  for (auto& [job, tasks] : addresses) jobs.emplace(job, JobTasks(std::move(tasks)));
  AcceleratorCounts accelerators;
  const int count = static_cast<int>(worker.devices().size());
  if (worker.devices().front()->id().type == DeviceType::gpu) accelerators["GPU"] = count;
  return std::make_shared<SimpleResolver>(
      ClusterSpec(std::move(jobs)), SimpleResolverOptions{.task = {.task_type = worker.job(), .task_id = worker.task()},
                                                          .num_accelerators = accelerators});
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

MultiWorkerMirroredExtended::MultiWorkerMirroredExtended(Worker& worker, MultiWorkerOptions options)
    : MirroredExtended(worker, spec_of(worker, options)),
      cluster_resolver_(options.cluster_resolver ? std::move(options.cluster_resolver) : resolver_of(worker)) {}

MultiWorkerMirroredExtended::MultiWorkerMirroredExtended(Worker& worker, const ReplicatedSpec& spec)
    : MirroredExtended(worker, spec), cluster_resolver_(resolver_of(worker)) {}

std::shared_ptr<Variable> MultiWorkerMirroredExtended::make_variable(const VariableSpec& spec) {
  std::shared_ptr<Variable> variable = MirroredExtended::make_variable(spec);
  std::vector<Stream*> streams;
  for (Device* device : worker_devices()) streams.push_back(&device->compute_stream());
  if (in_sync_ == nullptr) in_sync_ = &worker().communicator(group());
  in_sync_->broadcast(variable->components(), 0, streams);
  return variable;
}

MultiWorkerMirroredStrategy::MultiWorkerMirroredStrategy(Worker& worker, MultiWorkerOptions options)
    : Strategy("multi_worker_mirrored", std::make_unique<MultiWorkerMirroredExtended>(worker, std::move(options))) {}

}  // namespace tandem
