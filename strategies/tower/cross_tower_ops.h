// CrossTowerOps of TensorFlow 1: combine a value of each device. The library's operations do the work; the devices that
// hold the values decide which ones.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "strategies/cross_device/all_reduce_spec.h"
#include "strategies/cross_device/cross_device_ops.h"

namespace tandem::tower {

// Results are mirrored over the destinations, even over a single one. ValueError for no destinations, a value without
// tensors, and an aggregation other than SUM and MEAN.
class CrossTowerOps {
 public:
  explicit CrossTowerOps(Worker& worker) : worker_(worker) {}
  virtual ~CrossTowerOps() = default;
  CrossTowerOps(const CrossTowerOps&) = delete;
  CrossTowerOps& operator=(const CrossTowerOps&) = delete;

  Value reduce(VariableAggregation aggregation, const Value& per_device, const Destinations& destinations);
  // Returns one result for each pair, in order.
  std::vector<Value> batch_reduce(VariableAggregation aggregation, const std::vector<ReducePair>& pairs);
  Value broadcast(const Value& value, const Destinations& destinations);

 protected:
  virtual std::vector<Value> do_batch_reduce(ReduceOp op, const std::vector<ReducePair>& pairs) = 0;
  // Returns the library's operations of this name on the devices of the value, which are made once for every list of
  // devices. ValueError for collectives over devices that other workers drive.
  CrossDeviceOps& ops_for(const std::string& name, const Value& value, const Packing& packing);
  Worker& worker() const { return worker_; }

 private:
  Worker& worker_;
  std::map<std::pair<std::string, std::vector<Device*>>, std::unique_ptr<CrossDeviceOps>> ops_;
};

// Copies all parts to one device, by default the first destination, adds them there and copies the result on.
class ReductionToOneDeviceCrossTowerOps final : public CrossTowerOps {
 public:
  explicit ReductionToOneDeviceCrossTowerOps(Worker& worker, std::string reduce_to_device = {})
      : CrossTowerOps(worker), device_(std::move(reduce_to_device)) {}

 private:
  std::vector<Value> do_batch_reduce(ReduceOp op, const std::vector<ReducePair>& pairs) override;
  std::string device_;
};

struct SmallGradients {
  std::int64_t max_bytes = 0;  // f32 tensors up to this size are packed together; 0: none
  int max_group = 10;
};

// Reduces with "nccl" or "hierarchical_copy" when values and destinations are on the same devices, and otherwise on one
// device. ValueError for another algorithm and for a negative number of packs.
class AllReduceCrossTowerOps final : public CrossTowerOps {
 public:
  explicit AllReduceCrossTowerOps(Worker& worker, std::string all_reduce_alg = "nccl", int num_packs = 1,
                                  SmallGradients small = {});

 private:
  std::vector<Value> do_batch_reduce(ReduceOp op, const std::vector<ReducePair>& pairs) override;
  std::string algorithm_;
  Packing packing_;
};

// Reduces each tensor with the algorithm of the first spec whose size limit it does not exceed: "nccl" is the
// communicator's all-reduce, all others reduce on one device. ValueError for an unknown algorithm.
class MultiWorkerAllReduce final : public CrossTowerOps {
 public:
  explicit MultiWorkerAllReduce(Worker& worker,
                                std::vector<AllReduceSpec> specs = {{.algorithm = "pscpu/pscpu", .shards = 2}},
                                int num_packs = 0);
  const std::vector<AllReduceSpec>& specs() const { return specs_; }

 private:
  std::vector<Value> do_batch_reduce(ReduceOp op, const std::vector<ReducePair>& pairs) override;
  std::vector<AllReduceSpec> specs_;
  Packing packing_;
};

// Reduces over the devices of all workers, which must make the same calls in the same order: GPU:0 and so on of each
// worker, for num_gpus_per_worker = 0 its CPU:0. (A worker that computes on CPUs counts them as its GPUs.) ValueError
// for a number of workers other than the cluster's, and for more devices per worker than there are.
class CollectiveAllReduce final : public CrossTowerOps {
 public:
  CollectiveAllReduce(Worker& worker, int num_workers, int num_gpus_per_worker, int num_packs = 1);

 private:
  std::vector<Value> do_batch_reduce(ReduceOp op, const std::vector<ReducePair>& pairs) override;
  std::unique_ptr<CrossDeviceOps> collective_;
};

}  // namespace tandem::tower
