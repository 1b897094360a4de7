// Executes collectives with NCCL, for devices that each have a GPU of their own.
#pragma once

#include <string>
#include <vector>

#include "engine/cuda/collectives/nccl_communicators.h"
#include "engine/threads/collective_call.h"

namespace tandem::cuda {

class NcclCollectives final : public threads::CollectiveExecutor {
 public:
  // `devices` names those of all ranks; the communicators are those of the ranks in this process.
  NcclCollectives(std::shared_ptr<NcclCommunicators> communicators, std::vector<std::string> devices)
      : communicators_(std::move(communicators)), devices_(std::move(devices)) {}

  void execute(const threads::CollectiveCall& call) override;
  void abort() override { abort_together(communicators_->give_up()); }

 private:
  void send(const threads::CollectiveCall& call);
  int rank_of(const Device& device) const;

  const std::shared_ptr<NcclCommunicators> communicators_;
  const std::vector<std::string> devices_;
};

}  // namespace tandem::cuda
