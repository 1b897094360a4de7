// Executes collectives with NCCL, for devices that each have a GPU of their own.
#pragma once

#include <string>
#include <vector>

#include "engine/cuda/nccl_communicators.h"
#include "engine/threads/collective_call.h"

namespace tandem::cuda {

class NcclCollectives final : public threads::CollectiveExecutor {
 public:
  // The ranks of the group are all in this process.
  explicit NcclCollectives(std::shared_ptr<NcclCommunicators> communicators)
      : communicators_(std::move(communicators)) {}

  void execute(const threads::CollectiveCall& call) override;
  void abort() override { abort_together(communicators_->give_up()); }

 private:
  void send(const threads::CollectiveCall& call);
  int rank_of(const Device& device) const;

  const std::shared_ptr<NcclCommunicators> communicators_;
};

}  // namespace tandem::cuda
