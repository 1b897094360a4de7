// Accesses the values of a call's tensors, which are in host memory.
#pragma once

#include <cstddef>
#include <cstring>

#include "engine/tensor.h"

namespace tandem::mpi {

inline std::byte* data_of(const Tensor& tensor, std::size_t offset_bytes = 0) {
  return static_cast<std::byte*>(tensor.data()) + offset_bytes;
}

inline void copy_unless_same(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (to != from && bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace tandem::mpi
