#include "engine/cuda/kernels/device_types.cuh"
#include "engine/cuda/kernels/layer_kernels.h"

namespace tandem::cuda {
namespace {

// Sizes and strides in units.
template <typename Unit, typename Index>
__global__ void __launch_bounds__(kThreads) copy_strided(StridedArguments arguments, Index count) {
  const Index step = static_cast<Index>(gridDim.x) * blockDim.x;
  for (Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    Index left = i;
    std::int64_t to = 0, from = 0;
    for (int axis = 3; axis >= 0; --axis) {
      const Index size = static_cast<Index>(arguments.sizes[axis]), rest = left / size;
      const auto digit = static_cast<std::int64_t>(left - rest * size);
      to += digit * arguments.to_strides[axis];
      from += digit * arguments.from_strides[axis];
      left = rest;
    }
    static_cast<Unit*>(arguments.to)[to] = static_cast<const Unit*>(arguments.from)[from];
  }
}

template <typename Unit>
void launch_units(cudaStream_t stream, const StridedArguments& arguments) {
  std::int64_t count = 1;
  for (const std::int64_t size : arguments.sizes) count *= size;
  if (fits_narrow(count)) {
    start(copy_strided<Unit, NarrowIndex>, blocks_for(count), kThreads, stream, arguments, count);
  } else {
    start(copy_strided<Unit, std::int64_t>, blocks_for(count), kThreads, stream, arguments, count);
  }
}

// Whether runs along the innermost axis, which lie together, and all distances are multiples of `unit` bytes. If so,
// sizes and strides become those in units.
bool divide(StridedArguments& arguments, std::int64_t element_bytes, std::int64_t unit) {
  if (arguments.to_strides[3] != 1 || arguments.from_strides[3] != 1) return unit == element_bytes;
  auto all = static_cast<std::uintptr_t>(arguments.sizes[3] * element_bytes);
  all |= reinterpret_cast<std::uintptr_t>(arguments.to) | reinterpret_cast<std::uintptr_t>(arguments.from);
  for (int axis = 0; axis < 3; ++axis) {
    all |= static_cast<std::uintptr_t>((arguments.to_strides[axis] | arguments.from_strides[axis]) * element_bytes);
  }
  if (all % static_cast<std::uintptr_t>(unit) != 0) return false;
  arguments.sizes[3] = arguments.sizes[3] * element_bytes / unit;
  for (int axis = 0; axis < 3; ++axis) {
    arguments.to_strides[axis] = arguments.to_strides[axis] * element_bytes / unit;
    arguments.from_strides[axis] = arguments.from_strides[axis] * element_bytes / unit;
  }
  return true;
}

}  // namespace

// Strides of axes with one element say nothing.
void launch_copy_strided(cudaStream_t stream, std::int64_t element_bytes, const StridedArguments& arguments) {
  StridedArguments units = arguments;
  for (int axis = 0; axis < 4; ++axis) {
    if (units.sizes[axis] == 0) return;
    if (units.sizes[axis] == 1) units.to_strides[axis] = units.from_strides[axis] = axis == 3 ? 1 : 0;
  }
  if (divide(units, element_bytes, sizeof(uint4))) return launch_units<uint4>(stream, units);
  if (divide(units, element_bytes, 8)) return launch_units<std::uint64_t>(stream, units);
  if (divide(units, element_bytes, 4)) return launch_units<std::uint32_t>(stream, units);
  if (divide(units, element_bytes, 2)) return launch_units<std::uint16_t>(stream, units);
  divide(units, element_bytes, 1);
  launch_units<std::uint8_t>(stream, units);
}

}  // namespace tandem::cuda
