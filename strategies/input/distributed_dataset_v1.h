// Distributed input as TensorFlow 1.x has it: whole elements are dealt to the devices, an incomplete last step is
// dropped, and one step uses as many of the dataset's batches as there are devices.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "strategies/input/distributed_dataset.h"

namespace tandem {

// Starts at the first element.
class DistributedIteratorV1 {
 public:
  explicit DistributedIteratorV1(DistributedDataset dataset) : dataset_(std::move(dataset)) { initialize(); }
  void initialize() { iterator_.emplace(dataset_.iterator()); }  // again from the start
  Value get_next() { return iterator_->get_next(); }             // OutOfRangeError after the last complete step

 private:
  DistributedDataset dataset_;
  std::optional<DistributedIterator> iterator_;
};

class DistributedDatasetV1 {
 public:
  DistributedDatasetV1(Dataset dataset, const InputWorkers& workers);
  DistributedIteratorV1 make_initializable_iterator() const { return DistributedIteratorV1(dataset_); }
  DistributedIteratorV1 make_one_shot_iterator() const { return DistributedIteratorV1(dataset_); }

 private:
  DistributedDataset dataset_;
};

// ValueError when the function gives no dataset. Every worker gets a full copy unless `auto_shard_dataset` divides the
// files the dataset reads; without files it does not.
using DatasetFunctionV1 = std::function<std::optional<Dataset>()>;
DistributedDatasetV1 distribute_dataset_v1(const DatasetFunctionV1& function, const InputWorkers& workers,
                                           bool auto_shard_dataset = false);

// An input function gives a dataset, whose elements are dealt to the devices, or a function, which is called once for
// every replica of a step and throws OutOfRangeError at its end. ValueError for a mode other than PER_WORKER, or for an
// empty function.
using ElementFunction = std::function<Element()>;
using InputFunction = std::function<std::variant<Dataset, ElementFunction>(const InputContext& context)>;
DistributedIteratorV1 make_input_fn_iterator(const InputFunction& function, const InputWorkers& workers,
                                             InputReplicationMode mode = InputReplicationMode::per_worker);

// One client that feeds several workers: the devices of each, by the worker's name.
using WorkerDeviceMap = std::vector<std::pair<std::string, std::vector<Device*>>>;

class MultiWorkerIteratorV1 {
 public:
  // ValueError when iterators and devices are not of the same workers.
  using Iterators = std::vector<std::pair<std::string, DistributedIteratorV1>>;
  MultiWorkerIteratorV1(Iterators iterators, WorkerDeviceMap devices);
  void initialize();
  // One value over the devices of all workers, in the map's order. ValueError for a device that stands there twice.
  Value get_next();

 private:
  Iterators iterators_;  // in the order of devices_
  WorkerDeviceMap devices_;
};

class MultiWorkerDatasetV1 {
 public:
  // ValueError as distribute_dataset_v1; sharding is over the map's workers.
  MultiWorkerDatasetV1(const DatasetFunctionV1& function, Worker& client, WorkerDeviceMap devices,
                       bool auto_shard_dataset = false);
  MultiWorkerIteratorV1 make_initializable_iterator() const;

 private:
  std::vector<std::pair<std::string, DistributedDatasetV1>> datasets_;
  WorkerDeviceMap devices_;
};

}  // namespace tandem
