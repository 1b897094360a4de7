// Distributed input as TensorFlow 1.x has it: whole elements are dealt to the devices, an incomplete last step is
// dropped, and one step consumes as many of the dataset's batches as there are devices.
//
// A program that drives the devices of several workers has one input pipeline for each worker: it passes several
// InputWorkers, in worker order. A step then has one value over the devices of all workers.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "strategies/input/distributed_dataset.h"

namespace tandem {

// The input pipeline of one worker.
struct PipelineV1 {
  DistributedDataset dataset;
  std::vector<Device*> devices;
};

// Starts at the first element.
class DistributedIteratorV1 {
 public:
  explicit DistributedIteratorV1(std::vector<PipelineV1> pipelines);
  // Starts again at the first element.
  void initialize();
  // OutOfRangeError after the last step that is complete on all workers.
  Value get_next();

 private:
  std::vector<PipelineV1> pipelines_;
  std::vector<DistributedIterator> iterators_;  // one for each pipeline
};

class DistributedDatasetV1 {
 public:
  DistributedDatasetV1(Dataset dataset, const InputWorkers& workers);
  explicit DistributedDatasetV1(std::vector<PipelineV1> pipelines) : pipelines_(std::move(pipelines)) {}
  DistributedIteratorV1 make_initializable_iterator() const { return DistributedIteratorV1(pipelines_); }
  DistributedIteratorV1 make_one_shot_iterator() const { return DistributedIteratorV1(pipelines_); }

 private:
  std::vector<PipelineV1> pipelines_;
};

// Calls the function once for each worker; ValueError when it returns no dataset. Every worker gets a full copy unless
// `auto_shard_dataset` divides the files that the dataset reads; a dataset without files is never divided.
using DatasetFunctionV1 = std::function<std::optional<Dataset>()>;
DistributedDatasetV1 distribute_dataset_v1(const DatasetFunctionV1& function, const InputWorkers& workers,
                                           bool auto_shard_dataset = false);
DistributedDatasetV1 distribute_dataset_v1(const DatasetFunctionV1& function, const std::vector<InputWorkers>& workers,
                                           bool auto_shard_dataset = false);

// Calls an input function once for each worker. It returns a dataset, whose elements are dealt to the devices, or a
// function, which is called once for every replica of a step and throws OutOfRangeError at its end. ValueError for a
// mode other than PER_WORKER, and for an empty function.
DistributedIteratorV1 make_input_fn_iterator(const InputFunction& function, const InputWorkers& workers,
                                             InputReplicationMode mode = InputReplicationMode::per_worker);
DistributedIteratorV1 make_input_fn_iterator(const InputFunction& function, const std::vector<InputWorkers>& workers,
                                             InputReplicationMode mode = InputReplicationMode::per_worker);

// The workers that one program feeds: the devices of each, by the worker's name.
using WorkerDeviceMap = std::vector<std::pair<std::string, std::vector<Device*>>>;

class MultiWorkerIteratorV1 {
 public:
  using Iterators = std::vector<std::pair<std::string, DistributedIteratorV1>>;
  // ValueError when iterators and devices are not of the same workers.
  MultiWorkerIteratorV1(Iterators iterators, WorkerDeviceMap devices);
  void initialize();
  // One value over the devices of all workers, in the map's order. ValueError for a device that the map lists twice.
  Value get_next();

 private:
  Iterators iterators_;  // in the order of devices_
  WorkerDeviceMap devices_;
};

class MultiWorkerDatasetV1 {
 public:
  // ValueError as for distribute_dataset_v1; sharding is over the map's workers.
  MultiWorkerDatasetV1(const DatasetFunctionV1& function, Worker& client, WorkerDeviceMap devices,
                       bool auto_shard_dataset = false);
  MultiWorkerIteratorV1 make_initializable_iterator() const;

 private:
  std::vector<std::pair<std::string, DistributedDatasetV1>> datasets_;
  WorkerDeviceMap devices_;
};

}  // namespace tandem
