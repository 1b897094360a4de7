// Simulated devices: their names, streams and memory in use. Several logical devices may share a physical one.
//
// A device that nobody uses takes little memory: there are a million of them where workers represent others.
#pragma once

#include <map>
#include <memory>

#include "engine/device.h"
#include "engine/sim/cores.h"
#include "engine/sim/costs/device_costs.h"
#include "engine/sim/fault_clock.h"

namespace tandem::sim {

class RepeatedIssue;
class RepeatedWork;
class SimRun;
class SimStream;

// The memory of a physical device. Buffers keep it alive, since they may outlive the run.
struct MemoryPool {
  double capacity_bytes = 0;  // 0: unlimited
  double in_use_bytes = 0;
  double peak_bytes = 0;
  double operand_bytes = 0;  // see SimDevice::note_operands()
};

struct PhysicalDevice {
  NodeIndex node = 0;
  const DeviceCosts* costs = nullptr;    // of the run
  std::shared_ptr<MemoryPool> memory{};  // null until used
  Cores::Node* threads = nullptr;        // see SimDevice::threads()
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
  std::int64_t memory_in_use_bytes() const override { return work_ ? work_->use->in_use : 0; }
  std::int64_t memory_peak_bytes() const override { return work_ ? work_->use->peak : 0; }
  void synchronize() override;
  void repeat(tandem::RepeatedWork& work, const std::function<void()>& issue) override;

  // The work to which a task of the device adds now, instead of issuing it; null: none. With `spoils` this ends,
  // because something follows that cannot be repeated. Usable from tasks.
  RepeatedWork* repeated(bool spoils = false);

  SimRun& run() { return run_; }
  NodeIndex node() const { return physical_.node; }
  const DeviceCosts& costs() const { return *physical_.costs; }
  // The cores that its streams' threads run on; null where they are no threads.
  Cores::Node* threads() const { return physical_.threads; }
  std::string name() const { return id_.text(); }
  PlaceOfDevice place() const;
  // Products on processors work on a copy of their operands, which the next ones overwrite: each device has one, as
  // large as its largest operands so far.
  void note_operands(double bytes);
  // The most that all devices of the node have had in use together so far, with these copies.
  double node_peak_bytes() const {
    return physical_.memory ? physical_.memory->peak_bytes + physical_.memory->operand_bytes : 0;
  }
  // Whether one of its streams executes a collective now. The streams report it, in the kernel.
  bool is_in_collective() const { return work_ && work_->collectives > 0; }
  void enter_collective();
  void leave_collective() { --work().collectives; }
  // What of its work runs together now, until something disturbs it; null: nothing. In the kernel.
  void set_together(RepeatedIssue* issue) { work().together = issue; }
  void disturb();
  std::int64_t collectives_begun() const { return work_ ? work_->collectives_begun : 0; }  // so far
  const std::map<int, std::unique_ptr<SimStream>>& streams() const;

  struct Use {
    std::int64_t in_use = 0;
    std::int64_t peak = 0;
  };

 private:
  // The state of a device that somebody has used.
  struct Work {
    std::shared_ptr<Use> use = std::make_shared<Use>();
    std::shared_ptr<Buffer> no_values{};  // what work under way holds of tensors without values
    std::map<int, std::unique_ptr<SimStream>> streams{};
    int collectives = 0;  // streams that execute one
    std::int64_t collectives_begun = 0;
    RepeatedWork* repeated = nullptr;
    RepeatedIssue* together = nullptr;
    double operand_bytes = 0;
  };
  Work& work();

  SimRun& run_;
  DeviceId id_;
  int index_;
  int worker_;
  PhysicalDevice& physical_;
  std::unique_ptr<Work> work_;  // null until used
};

}  // namespace tandem::sim
