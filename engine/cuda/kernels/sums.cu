#include "engine/cuda/kernels/device_types.cuh"

namespace tandem::cuda {
namespace {

// Half types are summed in f32, and every sum has one order: equal inputs give equal sums.

constexpr unsigned kSumColumns = 32, kSumRows = 16;  // a warp reads along a row
constexpr unsigned kWarp = 32, kAllLanes = 0xffffffff;

// Divides the terms of each sum into `splits` parts of `chunk` terms, the last one shorter, and adds each part: `to` is
// [outer, splits, inner]. A block sums tiles of columns: each of its rows of threads every kSumRows-th row of `a`,
// then all of them together.
template <typename To, typename From>
__global__ void __launch_bounds__(kSumColumns* kSumRows, 1)
    sum_columns(To* __restrict__ to, const From* __restrict__ a, std::int64_t outer, std::int64_t length,
                std::int64_t inner, std::int64_t splits, std::int64_t chunk) {
  __shared__ Wide<From> sums[kSumRows][kSumColumns];
  const unsigned lane = threadIdx.x / kSumColumns, place = threadIdx.x % kSumColumns;
  const std::int64_t tiles = (inner + kSumColumns - 1) / kSumColumns;
  for (std::int64_t tile = blockIdx.x; tile < outer * splits * tiles; tile += gridDim.x) {
    const std::int64_t column = tile % tiles * kSumColumns + place, part = tile / tiles;
    const std::int64_t begin = part % splits * chunk, end = begin + chunk < length ? begin + chunk : length;
    const From* values = a + part / splits * length * inner + column;
    Wide<From> sum{};
    for (std::int64_t row = begin + lane; row < end && column < inner; row += kSumRows) {
      sum = add(sum, load(values + row * inner));
    }
    sums[lane][place] = sum;
    __syncthreads();
    for (unsigned half = kSumRows / 2; half > 0; half /= 2) {
      if (lane < half) sums[lane][place] = add(sums[lane][place], sums[lane + half][place]);
      __syncthreads();
    }
    if (lane == 0 && column < inner) store(to + part * inner + column, sums[0][place]);
    __syncthreads();
  }
}

// A block for each part of a row: `to` is [rows, splits].
template <typename To, typename From>
__global__ void __launch_bounds__(kThreads) sum_rows(To* __restrict__ to, const From* __restrict__ a, std::int64_t rows,
                                                     std::int64_t length, std::int64_t splits, std::int64_t chunk) {
  __shared__ Wide<From> lanes[kThreads];
  for (std::int64_t part = blockIdx.x; part < rows * splits; part += gridDim.x) {
    const std::int64_t begin = part % splits * chunk, end = begin + chunk < length ? begin + chunk : length;
    const From* values = a + part / splits * length;
    Wide<From> sum{};
    for (std::int64_t i = begin + threadIdx.x; i < end; i += kThreads) sum = add(sum, load(values + i));
    lanes[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned half = kThreads / 2; half > 0; half /= 2) {
      if (threadIdx.x < half) lanes[threadIdx.x] = add(lanes[threadIdx.x], lanes[threadIdx.x + half]);
      __syncthreads();
    }
    if (threadIdx.x == 0) store(to + part, lanes[0]);
    __syncthreads();
  }
}

// A warp for each short row.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    sum_short_rows(T* __restrict__ to, const T* __restrict__ a, std::int64_t rows, std::int64_t length) {
  constexpr unsigned kWarps = kThreads / kWarp;
  const unsigned lane = threadIdx.x % kWarp;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * kWarps;
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp; row < rows;
       row += step) {
    Wide<T> sum{};
    for (std::int64_t i = lane; i < length; i += kWarp) sum = add(sum, load(a + row * length + i));
    for (unsigned distance = kWarp / 2; distance > 0; distance /= 2) {
      sum = add(sum, static_cast<Wide<T>>(__shfl_xor_sync(kAllLanes, sum, distance)));
    }
    if (lane == 0) store(to + row, sum);
  }
}

unsigned most_blocks(std::int64_t wanted) {
  constexpr std::int64_t kMostBlocks = 65536;  // a block takes several where there are more
  return static_cast<unsigned>(wanted < kMostBlocks ? wanted : kMostBlocks);
}

// Into how many parts a sum is divided: enough to fill the largest GPU with `blocks` of them, none shorter than
// `shortest`. It depends on shapes only, so that equal inputs give equal sums on every GPU.
std::int64_t splits_for(std::int64_t blocks, std::int64_t length, std::int64_t shortest, std::int64_t sums,
                        std::size_t sum_bytes, const Scratch& scratch) {
  constexpr std::int64_t kFull = 512;
  std::int64_t splits = kFull / blocks;
  if (splits > length / shortest) splits = length / shortest;
  const auto room = scratch.at == nullptr ? 0 : static_cast<std::int64_t>(scratch.bytes / sum_bytes) / sums;
  if (splits > room) splits = room;
  return splits < 2 ? 1 : splits;
}

std::int64_t parts_of(std::int64_t length, std::int64_t splits) {
  return (length + splits - 1) / splits;
}

template <typename T>
void sum_along_rows(cudaStream_t stream, const Scratch& scratch, T* to, const T* a, std::int64_t rows,
                    std::int64_t length) {
  constexpr std::int64_t kShort = 256, kShortestPart = 4096;
  using W = Wide<T>;
  if (length <= kShort) {
    return start(sum_short_rows<T>, most_blocks((rows * kWarp + kThreads - 1) / kThreads), kThreads, stream, to, a,
                 rows, length);
  }
  const std::int64_t splits = splits_for(rows, length, kShortestPart, rows, sizeof(W), scratch);
  if (splits == 1) return start(sum_rows<T, T>, most_blocks(rows), kThreads, stream, to, a, rows, length, 1, length);
  W* parts = static_cast<W*>(scratch.at);
  start(sum_rows<W, T>, most_blocks(rows * splits), kThreads, stream, parts, a, rows, length, splits,
        parts_of(length, splits));
  start(sum_rows<T, W>, most_blocks(rows), kThreads, stream, to, parts, rows, splits, 1, splits);
}

template <typename T>
void sum_along_columns(cudaStream_t stream, const Scratch& scratch, T* to, const T* a, std::int64_t outer,
                       std::int64_t length, std::int64_t inner) {
  constexpr std::int64_t kShortestPart = 4 * kSumRows;
  using W = Wide<T>;
  const std::int64_t tiles = outer * ((inner + kSumColumns - 1) / kSumColumns);
  const std::int64_t splits = splits_for(tiles, length, kShortestPart, outer * inner, sizeof(W), scratch);
  constexpr unsigned kBlock = kSumRows * kSumColumns;
  if (splits == 1) {
    return start(sum_columns<T, T>, most_blocks(tiles), kBlock, stream, to, a, outer, length, inner, 1, length);
  }
  W* parts = static_cast<W*>(scratch.at);
  start(sum_columns<W, T>, most_blocks(tiles * splits), kBlock, stream, parts, a, outer, length, inner, splits,
        parts_of(length, splits));
  start(sum_columns<T, W>, most_blocks(tiles), kBlock, stream, to, parts, outer, splits, inner, 1, splits);
}

}  // namespace

void launch_sum(cudaStream_t stream, const Scratch& scratch, DType dtype, void* to, const void* a, std::int64_t outer,
                std::int64_t length, std::int64_t inner) {
  if (outer * inner == 0) return;
  with_type(dtype, [&]<typename T>() {
    T* sums = static_cast<T*>(to);
    const T* values = static_cast<const T*>(a);
    if (inner == 1) {
      sum_along_rows(stream, scratch, sums, values, outer, length);
    } else {
      sum_along_columns(stream, scratch, sums, values, outer, length, inner);
    }
  });
}

}  // namespace tandem::cuda
