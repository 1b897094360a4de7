// The moments that an optimizer keeps of pieces of parameters.
//
// Threads: one task.
#pragma once

#include <span>
#include <vector>

#include "engine/device.h"

namespace tandem {

class Moments {
 public:
  // Returns `count` tensors for piece number `piece`, such as `parameters`; made, of zeros, at the first call.
  std::span<const Tensor> of(std::size_t piece, const Tensor& parameters, int count);

 private:
  std::vector<std::vector<Tensor>> pieces_;
};

}  // namespace tandem
