#include "engine/cuda/kernels/layer_kernels.h"
#include "engine/cuda/kernels/map.cuh"

namespace tandem::cuda {
namespace {

template <typename Unit, typename W>
__device__ Unit unit_of(W value) {
  Unit unit;
  for (int i = 0; i < Unit::kElements; ++i) unit.set(i, value);
  return unit;
}

// In units of what rows are multiples of: `width` of them in a row, `count` in all.
template <typename Unit, typename T, typename Index>
__global__ void __launch_bounds__(kThreads) gather(GatherArguments arguments, Index count, Index width) {
  const Index step = static_cast<Index>(gridDim.x) * blockDim.x;
  T* to = static_cast<T*>(arguments.to);
  for (Index i = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    const Index row = i / width, column = i - row * width;
    const std::int64_t at = arguments.indices[row] - arguments.first;
    const bool is_there = at >= 0 && at < arguments.table_rows;
    if (!is_there && arguments.accumulates) continue;
    Unit unit = unit_of<Unit>(Wide<T>{0});
    if (is_there) {
      const std::int64_t place = at * static_cast<std::int64_t>(width) + static_cast<std::int64_t>(column);
      unit = Unit(static_cast<const T*>(arguments.table), place);
    }
    if (arguments.accumulates) {
      const Unit old(to, i);
      for (int k = 0; k < Unit::kElements; ++k) unit.set(k, add(old.at(k), unit.at(k)));
    }
    unit.store_to(to, i);
  }
}

}  // namespace

void launch_gather_rows(cudaStream_t stream, DType dtype, const GatherArguments& arguments) {
  if (arguments.rows * arguments.columns == 0) return;
  with_type(dtype, [&]<typename T>() {
    with_unit<T>(arguments.columns, {arguments.to, arguments.table}, [&]<typename Unit>() {
      const std::int64_t width = arguments.columns / Unit::kElements, count = arguments.rows * width;
      if (fits_narrow(count)) {
        start(gather<Unit, T, NarrowIndex>, blocks_for(count), kThreads, stream, arguments, count, width);
      } else {
        start(gather<Unit, T, std::int64_t>, blocks_for(count), kThreads, stream, arguments, count, width);
      }
    });
  });
}

}  // namespace tandem::cuda
