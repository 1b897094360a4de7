// The devices of one run, of the cuda engine or of a process of another one: which GPU each logical device is on, and
// how groups of them communicate.
//
// Threads: any.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "engine/cuda/collectives/staged_operands.h"
#include "engine/cuda/device/gpu.h"
#include "engine/cuda/device/gpu_watch.h"
#include "engine/cuda/device/issue_order.h"
#include "engine/threads/process_devices.h"

namespace tandem::cuda {

// The GPUs of this machine. Each is opened at its first use and kept over the engine's runs.
class Gpus {
 public:
  Gpus(int count, double watchdog_s)
      : watchdog_s_(watchdog_s), hangs_(std::make_shared<Hangs>(count)), gpus_(static_cast<std::size_t>(count)) {}
  int count() const { return static_cast<int>(gpus_.size()); }
  Gpu& at(int ordinal);
  std::shared_ptr<threads::BlockPool> pinned_memory();
  double watchdog_s() const { return watchdog_s_; }  // GpuWatch's timeout
  std::string take_graph_counts();                   // since the last call, as text; "" if there were none
  std::string clock_text() const;                    // how precise records are

 private:
  const double watchdog_s_;
  const std::shared_ptr<Hangs> hangs_;
  mutable std::mutex mutex_;  // guards gpus_ and pinned_memory_
  std::vector<std::unique_ptr<Gpu>> gpus_;
  std::shared_ptr<threads::BlockPool> pinned_memory_;
};

class CudaMachine final : public threads::ProcessMachine {
 public:
  // Logical device i of each worker is on GPU `first_gpu` + i, modulo their number.
  CudaMachine(Gpus& gpus, bool with_graphs, int first_gpu = 0)
      : gpus_(gpus), with_graphs_(with_graphs), first_gpu_(first_gpu), watch_(gpus.watchdog_s()) {}

  std::unique_ptr<threads::LocalDevice> make_device(threads::RunContext& context, threads::WorkerState& worker,
                                                    DeviceId id, int index) override;
  std::shared_ptr<threads::CollectiveExecutor> make_collective_executor(const std::vector<Device*>& devices) override;
  std::shared_ptr<threads::SpanningPart> make_spanning_part(const std::vector<Device*>& devices) override;
  threads::HostStaging& staging() override;

  // Says how the groups of this run have communicated, for Timeline::settings; "" where there was none on GPUs.
  std::string collectives() const;

 private:
  Gpus& gpus_;
  const bool with_graphs_;
  const int first_gpu_;
  GpuWatch watch_;
  const std::shared_ptr<IssueOrder> order_ = std::make_shared<IssueOrder>();
  std::atomic<const threads::RunControl*> control_{nullptr};  // of the run, from the first device on
  mutable std::mutex mutex_;                                  // guards the rest
  std::set<std::string> paths_;
  std::unique_ptr<StagedOperands> staging_;
};

}  // namespace tandem::cuda
