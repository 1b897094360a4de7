// Memory of other processes of a run. A tensor there has a buffer that the host cannot access.
//
// Threads: any.
#pragma once

#include "engine/tensor.h"

namespace tandem::threads {

class RemoteMemory {
 public:
  virtual ~RemoteMemory() = default;
  // Copies between a tensor of this process and one of another, on the thread of a stream; returns when it is done.
  // Both have the same number of bytes.
  virtual void copy(const Tensor& to, const Tensor& from) = 0;
};

}  // namespace tandem::threads
