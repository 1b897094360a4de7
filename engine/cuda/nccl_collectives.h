// The collectives of devices that each have a GPU of their own, by NCCL.
#pragma once

#include <nccl.h>

#include <string>
#include <vector>

#include "engine/cuda/copied_collectives.h"
#include "engine/cuda/gpu_watch.h"

namespace tandem::cuda {

class NcclCollectives final : public cpu::CollectivePerformer, public Watched {
 public:
  // `gpus`: of each rank, distinct; `names`: of the ranks' devices. Throws RunError when NCCL makes no communicator.
  NcclCollectives(const std::vector<int>& gpus, std::vector<std::string> names);
  ~NcclCollectives() override;
  NcclCollectives(const NcclCollectives&) = delete;
  NcclCollectives& operator=(const NcclCollectives&) = delete;

  void perform(const cpu::CollectiveCall& call) override;
  void abort() override;
  void check() override;  // for errors NCCL finds on its own

 private:
  void perform_rank(const cpu::CollectiveCall& call, int rank);

  const std::vector<std::string> names_;
  std::mutex mutex_;  // of the communicators' end
  std::vector<ncclComm_t> communicators_;
  CopiedCollectives copies_;  // for one rank to another
};

}  // namespace tandem::cuda
