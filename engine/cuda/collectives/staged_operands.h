// Moves the operands of a call between GPUs and pinned host memory, for a group that NCCL cannot serve: some of its
// devices are in other processes, and several share a GPU. Floats of 16 bits that are to be reduced become f32 on the
// way, because a CPU has no arithmetic for them.
//
// Threads: any.
#pragma once

#include <memory>

#include "engine/cuda/device/gpu_watch.h"
#include "engine/threads/block_pool.h"
#include "engine/threads/process_devices.h"

namespace tandem::cuda {

class StagedOperands final : public threads::HostStaging {
 public:
  // Waits for streams as long as `watch` does. Then, a second after the run was stopped, and when a communicator has
  // failed, throws RunError.
  StagedOperands(std::shared_ptr<threads::BlockPool> pinned, GpuWatch& watch)
      : pinned_(std::move(pinned)), watch_(watch) {}

  threads::HostOperands load(const threads::CollectiveCall& call, const std::vector<int>& here) override;
  void store(const threads::CollectiveCall& call, const threads::HostOperands& operands) override;

 private:
  std::byte* take(threads::HostOperands& operands, std::size_t bytes) const;
  void wait_for(const threads::CollectiveCall& call, int rank) const;

  const std::shared_ptr<threads::BlockPool> pinned_;
  GpuWatch& watch_;
};

}  // namespace tandem::cuda
