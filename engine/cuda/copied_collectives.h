// The collectives of devices that share GPUs, which NCCL takes once each: copies and kernels that reduce.
//
// Every rank's stream waits for every other's before and after. In between each rank's does a part of the work, and the
// contributions to an element are added in one order, from the owner of its part: all ranks get equal values.
#pragma once

#include "engine/threads/collective_call.h"

namespace tandem::cuda {

class CopiedCollectives final : public threads::CollectivePerformer {
 public:
  void perform(const threads::CollectiveCall& call) override;
  void abort() override {}  // copies end by themselves
};

}  // namespace tandem::cuda
