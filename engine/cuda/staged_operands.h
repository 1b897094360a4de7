// Moves the operands of a call between GPUs and pinned host memory, for a group that NCCL cannot serve: some of its
// devices are in other processes, and several share a GPU.
//
// Threads: any.
#pragma once

#include <memory>

#include "engine/threads/block_pool.h"
#include "engine/threads/process_devices.h"

namespace tandem::cuda {

class StagedOperands final : public threads::HostStaging {
 public:
  // Waits `timeout_s` at most for a stream; then throws RunError.
  StagedOperands(std::shared_ptr<threads::BlockPool> pinned, double timeout_s)
      : pinned_(std::move(pinned)), timeout_s_(timeout_s) {}

  threads::HostOperands load(const threads::CollectiveCall& call, const std::vector<int>& here) override;
  void store(const threads::CollectiveCall& call, const threads::HostOperands& operands) override;

 private:
  std::byte* take(threads::HostOperands& operands, std::size_t bytes) const;
  void wait_for(const threads::CollectiveCall& call, int rank) const;

  const std::shared_ptr<threads::BlockPool> pinned_;
  const double timeout_s_;
};

}  // namespace tandem::cuda
