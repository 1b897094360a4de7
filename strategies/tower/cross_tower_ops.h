// CrossTowerOps of TensorFlow 1: how values per device are combined, chosen by the devices that they are on.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "strategies/cross_device/all_reduce_spec.h"
#include "strategies/cross_device/cross_device_ops.h"

namespace tandem::tower {

// Results are mirrored over the destinations, also over a single one. ValueError: no destinations, a value without
// tensors, an aggregation other than SUM and MEAN.
class CrossTowerOps {
 public:
  explicit CrossTowerOps(Worker& worker) : worker_(worker) {}
  virtual ~CrossTowerOps() = default;
  CrossTowerOps(const CrossTowerOps&) = delete;
  CrossTowerOps& operator=(const CrossTowerOps&) = delete;

  Value reduce(VariableAggregation aggregation, const Value& per_device, const Destinations& destinations);
  // Results in the order of the pairs.
  std::vector<Value> batch_reduce(VariableAggregation aggregation, const std::vector<ReducePair>& pairs);
  Value broadcast(const Value& value, const Destinations& destinations);

 protected:
  virtual std::vector<Value> do_batch_reduce(ReduceOp op, const std::vector<ReducePair>& pairs) = 0;
  // The library's operations of this name on the devices of the value; made once for every list of devices.
  CrossDeviceOps& ops_for(const std::string& name, const Value& value, const Packing& packing);
  Worker& worker() const { return worker_; }

 private:
  Worker& worker_;
  std::map<std::pair<std::string, std::vector<Device*>>, std::unique_ptr<CrossDeviceOps>> ops_;
};

// Everything is copied to one device, by default the first destination, added there and copied on.
class ReductionToOneDeviceCrossTowerOps final : public CrossTowerOps {
 public:
  explicit ReductionToOneDeviceCrossTowerOps(Worker& worker, std::string reduce_to_device = {})
      : CrossTowerOps(worker), device_(std::move(reduce_to_device)) {}

 private:
  std::vector<Value> do_batch_reduce(ReduceOp op, const std::vector<ReducePair>& pairs) override;
  std::string device_;
};

struct SmallGradients {
  std::int64_t max_bytes = 0;  // f32 tensors up to this size are aggregated; 0: none
  int max_group = 10;
};

// "nccl" or "hierarchical_copy" where values and destinations are on the same devices, else as above. ValueError for
// another algorithm and for a negative number of packs.
class AllReduceCrossTowerOps final : public CrossTowerOps {
 public:
  explicit AllReduceCrossTowerOps(Worker& worker, std::string all_reduce_alg = "nccl", int num_packs = 1,
                                  SmallGradients small = {});

 private:
  std::vector<Value> do_batch_reduce(ReduceOp op, const std::vector<ReducePair>& pairs) override;
  std::string algorithm_;
  Packing packing_;
};

// The first spec whose limit a tensor keeps tells its algorithm: nccl is the communicator's, the others reduce to one
// device. ValueError for an unknown algorithm.
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

// Over the devices of all workers, each of which calls it in the same order. ValueError for numbers of workers and of
// devices per worker that are not the cluster's.
class CollectiveAllReduce final : public CrossTowerOps {
 public:
  CollectiveAllReduce(Worker& worker, int num_workers, int num_gpus_per_worker, int num_packs = 1);

 private:
  std::vector<Value> do_batch_reduce(ReduceOp op, const std::vector<ReducePair>& pairs) override;
  std::unique_ptr<CrossDeviceOps> collective_;
};

}  // namespace tandem::tower
