#include "engine/cuda/device_types.cuh"

namespace tandem::cuda {
namespace {

// Half types are summed in f32.
template <typename T>
__global__ void sum_columns(T* to, const T* a, std::int64_t outer, std::int64_t length, std::int64_t inner) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < outer * inner;
       i += step) {
    const T* column = a + i / inner * length * inner + i % inner;
    Wide<T> sum{};
    for (std::int64_t row = 0; row < length; ++row) sum = add(sum, load(column + row * inner));
    store(to + i, sum);
  }
}

// A block a row, in a fixed order: equal inputs give equal sums.
template <typename T>
__global__ void sum_rows(T* to, const T* a, std::int64_t rows, std::int64_t length) {
  __shared__ Wide<T> lanes[kThreads];
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    Wide<T> sum{};
    for (std::int64_t i = threadIdx.x; i < length; i += kThreads) sum = add(sum, load(a + row * length + i));
    lanes[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned half = kThreads / 2; half > 0; half /= 2) {
      if (threadIdx.x < half) lanes[threadIdx.x] = add(lanes[threadIdx.x], lanes[threadIdx.x + half]);
      __syncthreads();
    }
    if (threadIdx.x == 0) store(to + row, lanes[0]);
    __syncthreads();
  }
}

}  // namespace

void launch_sum(cudaStream_t stream, DType dtype, void* to, const void* a, std::int64_t outer, std::int64_t length,
                std::int64_t inner) {
  if (outer * inner == 0) return;
  with_type(dtype, [&]<typename T>() {
    T* sums = static_cast<T*>(to);
    const T* values = static_cast<const T*>(a);
    if (inner == 1) {
      const auto blocks = static_cast<unsigned>(outer < 65536 ? outer : 65536);
      start(sum_rows<T>, blocks, kThreads, stream, sums, values, outer, length);
    } else {
      start(sum_columns<T>, blocks_for(outer * inner), kThreads, stream, sums, values, outer, length, inner);
    }
  });
}

}  // namespace tandem::cuda
