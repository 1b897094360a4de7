#include "engine/cuda/device_types.cuh"

namespace tandem::cuda {
namespace {

// Half types are summed in f32, and every sum has one order: equal inputs give equal sums.

constexpr unsigned kTileColumns = 32, kTileRows = 32;  // a warp reads along a row

// A block sums tiles of columns: each of its rows of threads every kTileRows-th row of `a`, then all of them together.
template <typename T>
__global__ void sum_columns(T* to, const T* a, std::int64_t outer, std::int64_t length, std::int64_t inner) {
  __shared__ Wide<T> sums[kTileRows][kTileColumns];
  const unsigned lane = threadIdx.x / kTileColumns, place = threadIdx.x % kTileColumns;
  const std::int64_t tiles = (inner + kTileColumns - 1) / kTileColumns;
  for (std::int64_t tile = blockIdx.x; tile < outer * tiles; tile += gridDim.x) {
    const std::int64_t column = tile % tiles * kTileColumns + place;
    const T* values = a + tile / tiles * length * inner + column;
    Wide<T> sum{};
    for (std::int64_t row = lane; row < length && column < inner; row += kTileRows) {
      sum = add(sum, load(values + row * inner));
    }
    sums[lane][place] = sum;
    __syncthreads();
    for (unsigned half = kTileRows / 2; half > 0; half /= 2) {
      if (lane < half) sums[lane][place] = add(sums[lane][place], sums[lane + half][place]);
      __syncthreads();
    }
    if (lane == 0 && column < inner) store(to + tile / tiles * inner + column, sums[0][place]);
    __syncthreads();
  }
}

// A block a row.
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

unsigned most_blocks(std::int64_t wanted) {
  constexpr std::int64_t kMostBlocks = 65536;  // a block takes several where there are more
  return static_cast<unsigned>(wanted < kMostBlocks ? wanted : kMostBlocks);
}

}  // namespace

void launch_sum(cudaStream_t stream, DType dtype, void* to, const void* a, std::int64_t outer, std::int64_t length,
                std::int64_t inner) {
  if (outer * inner == 0) return;
  with_type(dtype, [&]<typename T>() {
    T* sums = static_cast<T*>(to);
    const T* values = static_cast<const T*>(a);
    if (inner == 1) {
      start(sum_rows<T>, most_blocks(outer), kThreads, stream, sums, values, outer, length);
    } else {
      const std::int64_t tiles = outer * ((inner + kTileColumns - 1) / kTileColumns);
      start(sum_columns<T>, most_blocks(tiles), kTileRows * kTileColumns, stream, sums, values, outer, length, inner);
    }
  });
}

}  // namespace tandem::cuda
