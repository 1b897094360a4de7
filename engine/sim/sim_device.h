// Simulated devices: their names, streams and memory in use. Several logical devices may share a physical one.
#pragma once

#include <map>
#include <memory>

#include "engine/device.h"
#include "engine/sim/device_costs.h"

namespace tandem::sim {

class SimRun;
class SimStream;

// The memory of a physical device. Buffers keep it alive, since they may outlive the run.
struct MemoryPool {
  double capacity_bytes = 0;  // 0: unlimited
  double in_use_bytes = 0;
};

struct PhysicalDevice {
  NodeIndex node = 0;
  std::shared_ptr<const DeviceCosts> costs;
  std::shared_ptr<MemoryPool> memory;
};

class SimDevice : public Device {
 public:
  SimDevice(SimRun& run, DeviceId id, int index, int worker, PhysicalDevice& physical);
  ~SimDevice() override;

  const DeviceId& id() const override { return id_; }
  int index() const override { return index_; }
  int worker() const override { return worker_; }
  Stream& stream(int index) override;
  Tensor allocate(DType dtype, Shape shape) override;
  std::int64_t memory_in_use_bytes() const override { return use_->in_use; }
  std::int64_t memory_peak_bytes() const override { return use_->peak; }
  void synchronize() override;

  SimRun& run() { return run_; }
  NodeIndex node() const { return physical_.node; }
  const DeviceCosts& costs() const { return *physical_.costs; }
  const std::string& name() const { return name_; }
  // Whether a stream of it executes a collective now. The streams say so, in the kernel.
  bool is_in_collective() const { return collectives_ > 0; }
  void enter_collective() { ++collectives_; }
  void leave_collective() { --collectives_; }
  const std::map<int, std::unique_ptr<SimStream>>& streams() const { return streams_; }

  struct Use {
    std::int64_t in_use = 0;
    std::int64_t peak = 0;
  };

 private:
  SimRun& run_;
  DeviceId id_;
  std::string name_;
  int index_;
  int worker_;
  PhysicalDevice& physical_;
  std::shared_ptr<Use> use_ = std::make_shared<Use>();
  const std::shared_ptr<Buffer> no_values_;  // what work under way holds of tensors without values
  std::map<int, std::unique_ptr<SimStream>> streams_;
  int collectives_ = 0;  // streams that execute one
};

}  // namespace tandem::sim
