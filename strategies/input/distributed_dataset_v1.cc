#include "strategies/input/distributed_dataset_v1.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "strategies/base/errors.h"
#include "strategies/input/autoshard.h"
#include "strategies/values/regroup.h"

namespace tandem {
namespace {

constexpr int kStepsAhead = 2;  // the one being used and the one being copied

InputWorkers without_partial_steps(InputWorkers workers) {
  workers.enable_partial_batch_handling = false;
  return workers;
}

// A function's elements. It is called when they are needed and not before.
Dataset generated(const ElementFunction& function) {
  return Dataset::from_generator([function] { return [function] { return std::optional(function()); }; }, {});
}

}  // namespace

DistributedDatasetV1::DistributedDatasetV1(Dataset dataset, const InputWorkers& workers)
    : dataset_(distribute_as_is({std::move(dataset)}, without_partial_steps(workers), kStepsAhead)) {}

DistributedDatasetV1 distribute_dataset_v1(const DatasetFunctionV1& function, const InputWorkers& workers,
                                           bool auto_shard_dataset) {
  std::optional<Dataset> dataset = function ? function() : std::nullopt;
  if (!dataset) throw ValueError("a dataset function must return a dataset");
  if (auto_shard_dataset) dataset = auto_shard_v1(*dataset, workers.num_workers, workers.pipeline_id);
  return {*std::move(dataset), workers};
}

DistributedIteratorV1 make_input_fn_iterator(const InputFunction& function, const InputWorkers& workers,
                                             InputReplicationMode mode) {
  if (mode != InputReplicationMode::per_worker) {
    throw ValueError("make_input_fn_iterator supports the replication mode PER_WORKER only");
  }
  const int replicas = static_cast<int>(workers.devices.size()) * workers.num_workers;
  const auto input = function(InputContext(workers.num_workers, workers.pipeline_id,
                                           workers.num_replicas_in_sync > 0 ? workers.num_replicas_in_sync : replicas));
  if (const auto* dataset = std::get_if<Dataset>(&input)) {
    return DistributedDatasetV1(*dataset, workers).make_initializable_iterator();
  }
  const auto& elements = std::get<ElementFunction>(input);
  if (!elements) throw ValueError("an input function must return a dataset or a function");
  return DistributedIteratorV1(distribute_as_is({generated(elements)}, without_partial_steps(workers), 1));
}

MultiWorkerIteratorV1::MultiWorkerIteratorV1(Iterators iterators, WorkerDeviceMap devices)
    : devices_(std::move(devices)) {
  const auto find = [&](const std::string& name) {
    return std::find_if(iterators.begin(), iterators.end(), [&](const auto& entry) { return entry.first == name; });
  };
  bool is_same = iterators.size() == devices_.size();
  for (const auto& [name, unused] : devices_) is_same = is_same && find(name) != iterators.end();
  if (!is_same) {
    throw ValueError(
        fmt::format("iterators of {} workers do not go with devices of {} workers: the workers must be "
                    "the same",
                    iterators.size(), devices_.size()));
  }
  for (const auto& [name, unused] : devices_) iterators_.push_back(std::move(*find(name)));
}

void MultiWorkerIteratorV1::initialize() {
  for (auto& [name, iterator] : iterators_) iterator.initialize();
}

Value MultiWorkerIteratorV1::get_next() {
  std::set<const Device*> seen;
  Value::Parts parts;
  for (std::size_t i = 0; i < iterators_.size(); ++i) {
    const auto& [name, devices] = devices_[i];
    for (const Device* device : devices) {
      if (!seen.insert(device).second) {
        throw ValueError(fmt::format("device {} of worker '{}' stands twice in the map", device->id().text(), name));
      }
    }
    const Value value = iterators_[i].second.get_next();
    for (std::size_t d = 0; d < devices.size(); ++d) parts.push_back(select_replica(static_cast<int>(d), value));
  }
  return regroup(parts);
}

MultiWorkerDatasetV1::MultiWorkerDatasetV1(const DatasetFunctionV1& function, Worker& client, WorkerDeviceMap devices,
                                           bool auto_shard_dataset)
    : devices_(std::move(devices)) {
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    const InputWorkers workers{.worker = client,
                               .devices = devices_[i].second,
                               .num_workers = static_cast<int>(devices_.size()),
                               .pipeline_id = static_cast<int>(i)};
    datasets_.emplace_back(devices_[i].first, distribute_dataset_v1(function, workers, auto_shard_dataset));
  }
}

MultiWorkerIteratorV1 MultiWorkerDatasetV1::make_initializable_iterator() const {
  MultiWorkerIteratorV1::Iterators iterators;
  for (const auto& [name, dataset] : datasets_) iterators.emplace_back(name, dataset.make_initializable_iterator());
  return {std::move(iterators), devices_};
}

}  // namespace tandem
