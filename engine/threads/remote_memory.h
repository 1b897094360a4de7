// Memory of other processes of a run. A tensor there has a buffer that the host cannot access.
//
// Threads: any.
#pragma once

#include <exception>

#include "engine/tensor.h"

namespace tandem::threads {

class RemoteMemory {
 public:
  virtual ~RemoteMemory() = default;
  // Copies between a tensor of this process and one of another, on the thread of a stream; returns when it is done.
  // Both have the same number of bytes. Where the other process was lost, nothing is copied, and the error is returned;
  // else null.
  virtual std::exception_ptr copy(const Tensor& to, const Tensor& from) = 0;
};

}  // namespace tandem::threads
