#include "strategies/input/distributed_dataset_v1.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "strategies/base/device_list.h"
#include "strategies/base/errors.h"
#include "strategies/input/autoshard.h"
#include "strategies/input/distributed_input.h"
#include "strategies/strategy/regroup.h"

namespace tandem {
namespace {

WorkerDeviceMap checked_map(WorkerDeviceMap devices) {
  for (const auto& [name, of_worker] : devices) checked_devices(of_worker, fmt::format("worker '{}'", name));
  return devices;
}

constexpr int kStepsAhead = 2;  // the step in use and the one being copied

InputWorkers without_partial_steps(InputWorkers workers) {
  workers.enable_partial_batch_handling = false;
  return workers;
}

// The elements that a function returns. It is called only when an element is needed.
Dataset generated(const ElementFunction& function) {
  return Dataset::from_generator([function] { return [function] { return std::optional(function()); }; }, {});
}

PipelineV1 pipeline_of(Dataset dataset, const InputWorkers& workers, int steps_ahead = kStepsAhead) {
  return {distribute_as_is({std::move(dataset)}, without_partial_steps(workers), steps_ahead), workers.devices};
}

PipelineV1 pipeline_of(const DatasetFunctionV1& function, const InputWorkers& workers, bool auto_shard_dataset) {
  std::optional<Dataset> dataset = function ? function() : std::nullopt;
  if (!dataset) throw ValueError("a dataset function must return a dataset");
  if (auto_shard_dataset) dataset = auto_shard_v1(*dataset, workers.num_workers, workers.pipeline_id);
  return pipeline_of(*std::move(dataset), workers);
}

PipelineV1 pipeline_of(const InputFunction& function, const InputWorkers& workers) {
  const int replicas = static_cast<int>(workers.devices.size()) * workers.num_workers;
  const auto input = function(InputContext(workers.num_workers, workers.pipeline_id,
                                           workers.num_replicas_in_sync > 0 ? workers.num_replicas_in_sync : replicas));
  if (const auto* dataset = std::get_if<Dataset>(&input)) return pipeline_of(*dataset, workers);
  const auto& elements = std::get<ElementFunction>(input);
  if (!elements) throw ValueError("an input function must return a dataset or a function");
  return pipeline_of(generated(elements), workers, 1);
}

// Joins what each worker's pipeline gave into one value over the devices of all workers.
Value over_all_devices(const std::vector<Value>& by_worker, const std::vector<std::vector<Device*>>& devices) {
  Value::Parts parts;
  std::vector<std::string> places;
  for (std::size_t w = 0; w < by_worker.size(); ++w) {
    for (std::size_t d = 0; d < devices[w].size(); ++d) {
      parts.push_back(select_replica(static_cast<int>(d), by_worker[w]));
      places.push_back(devices[w][d]->id().text());
    }
  }
  return map_structure(regroup(parts), [&places](const Value& leaf) {
    return leaf.is(ValueKind::per_replica) ? Value::per_replica(leaf.parts(), places) : leaf;
  });
}

}  // namespace

DistributedIteratorV1::DistributedIteratorV1(std::vector<PipelineV1> pipelines) : pipelines_(std::move(pipelines)) {
  initialize();
}

void DistributedIteratorV1::initialize() {
  iterators_.clear();
  for (const PipelineV1& pipeline : pipelines_) iterators_.push_back(pipeline.dataset.iterator());
}

Value DistributedIteratorV1::get_next() {
  if (iterators_.size() == 1) return iterators_.front().get_next();
  std::vector<Value> values;
  std::vector<std::vector<Device*>> devices;
  for (std::size_t w = 0; w < iterators_.size(); ++w) {
    values.push_back(iterators_[w].get_next());
    devices.push_back(pipelines_[w].devices);
  }
  return over_all_devices(values, devices);
}

DistributedIteratorV1 DistributedDataset::make_one_shot_iterator() const {
  return make_initializable_iterator();
}

DistributedIteratorV1 DistributedDataset::make_initializable_iterator() const {
  return DistributedIteratorV1({{*this, input_->workers.devices}});
}

DistributedDatasetV1::DistributedDatasetV1(Dataset dataset, const InputWorkers& workers)
    : pipelines_({pipeline_of(std::move(dataset), workers)}) {}

DistributedDatasetV1 distribute_dataset_v1(const DatasetFunctionV1& function, const InputWorkers& workers,
                                           bool auto_shard_dataset) {
  return distribute_dataset_v1(function, std::vector<InputWorkers>{workers}, auto_shard_dataset);
}

DistributedDatasetV1 distribute_dataset_v1(const DatasetFunctionV1& function, const std::vector<InputWorkers>& workers,
                                           bool auto_shard_dataset) {
  std::vector<PipelineV1> pipelines;
  for (const InputWorkers& one : workers) pipelines.push_back(pipeline_of(function, one, auto_shard_dataset));
  return DistributedDatasetV1(std::move(pipelines));
}

DistributedIteratorV1 make_input_fn_iterator(const InputFunction& function, const InputWorkers& workers,
                                             InputReplicationMode mode) {
  return make_input_fn_iterator(function, std::vector<InputWorkers>{workers}, mode);
}

DistributedIteratorV1 make_input_fn_iterator(const InputFunction& function, const std::vector<InputWorkers>& workers,
                                             InputReplicationMode mode) {
  if (mode != InputReplicationMode::per_worker) {
    throw ValueError("make_input_fn_iterator supports the replication mode PER_WORKER only");
  }
  std::vector<PipelineV1> pipelines;
  for (const InputWorkers& one : workers) pipelines.push_back(pipeline_of(function, one));
  return DistributedIteratorV1(std::move(pipelines));
}

MultiWorkerIteratorV1::MultiWorkerIteratorV1(Iterators iterators, WorkerDeviceMap devices)
    : devices_(checked_map(std::move(devices))) {
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
  std::vector<Value> values;
  std::vector<std::vector<Device*>> devices;
  for (std::size_t i = 0; i < iterators_.size(); ++i) {
    devices.push_back(devices_[i].second);
    for (const Device* device : devices.back()) {
      if (seen.insert(device).second) continue;
      throw ValueError(fmt::format("device {} of worker '{}' is listed twice", device->id().text(), devices_[i].first));
    }
    values.push_back(iterators_[i].second.get_next());
  }
  return over_all_devices(values, devices);
}

MultiWorkerDatasetV1::MultiWorkerDatasetV1(const DatasetFunctionV1& function, Worker& client, WorkerDeviceMap devices,
                                           bool auto_shard_dataset)
    : devices_(checked_map(std::move(devices))) {
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
