// Executes collectives with copies and reducing kernels, for devices that share GPUs: NCCL accepts each GPU only once.
//
// The streams of all ranks wait for each other before and after. In between each executes a part of the work.
// Contributions to an element are added in one order, from the owner of its part, so all ranks get equal values.
#pragma once

#include "engine/threads/collective_call.h"

namespace tandem::cuda {

class CopiedCollectives final : public threads::CollectiveExecutor {
 public:
  void execute(const threads::CollectiveCall& call) override;
  void abort() override {}  // copies end by themselves
};

}  // namespace tandem::cuda
