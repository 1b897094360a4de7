// Groups of threads that share a row of a matrix, and what they find together: every thread of a group gets the same
// bits, and equal inputs give equal results. For .cu files.
#pragma once

#include "engine/cuda/kernels/device_types.cuh"

namespace tandem::cuda {

inline constexpr unsigned kWarp = 32, kAllLanes = 0xffffffff;
inline constexpr unsigned kRowThreads = 512;  // of a block that takes a whole row

template <typename W>
struct Largest {
  W logit;
  std::int64_t at;
};

// Ties go to the first class.
template <typename W>
__device__ Largest<W> larger(Largest<W> mine, Largest<W> other) {
  return other.logit > mine.logit || (other.logit == mine.logit && other.at < mine.at) ? other : mine;
}

// The threads that share a row: a warp, or a block of kRowThreads.
struct WarpOfRow {
  static constexpr unsigned kThreads = kWarp;
  __device__ static unsigned lane() { return threadIdx.x % kWarp; }
  template <typename W>
  __device__ static Largest<W> largest_of(Largest<W> mine) {
    for (unsigned distance = kWarp / 2; distance > 0; distance /= 2) {
      mine = larger(mine,
                    {__shfl_xor_sync(kAllLanes, mine.logit, distance), __shfl_xor_sync(kAllLanes, mine.at, distance)});
    }
    return mine;
  }
  // NaN is passed over, where there is a number.
  template <typename W>
  __device__ static W most_of(W mine) {
    for (unsigned distance = kWarp / 2; distance > 0; distance /= 2) {
      const W other = __shfl_xor_sync(kAllLanes, mine, distance);
      mine = mine < other ? other : mine;
    }
    return mine;
  }
  template <typename W>
  __device__ static W sum_of(W mine) {
    for (unsigned distance = kWarp / 2; distance > 0; distance /= 2) {
      mine += __shfl_xor_sync(kAllLanes, mine, distance);
    }
    return mine;
  }
  __device__ static void meet() { __syncwarp(); }
};

struct BlockOfRow {
  static constexpr unsigned kThreads = kRowThreads, kWarps = kRowThreads / kWarp;
  __device__ static unsigned lane() { return threadIdx.x; }
  template <typename W>
  __device__ static Largest<W> largest_of(Largest<W> mine) {
    return combined(WarpOfRow::largest_of(mine), [](Largest<W> one, Largest<W> other) { return larger(one, other); });
  }
  template <typename W>
  __device__ static W most_of(W mine) {
    return combined(WarpOfRow::most_of(mine), [](W one, W other) { return one < other ? other : one; });
  }
  template <typename W>
  __device__ static W sum_of(W mine) {
    return combined(WarpOfRow::sum_of(mine), [](W one, W other) { return one + other; });
  }
  __device__ static void meet() { __syncthreads(); }

 private:
  // What each warp has found, combined by every thread in the same order. The first meeting lets all read what an
  // earlier call has stored.
  template <typename V, typename Combine>
  __device__ static V combined(V of_warp, Combine combine) {
    __shared__ V of_warps[kWarps];
    __syncthreads();
    if (threadIdx.x % kWarp == 0) of_warps[threadIdx.x / kWarp] = of_warp;
    __syncthreads();
    V all = of_warps[0];
    for (unsigned warp = 1; warp < kWarps; ++warp) all = combine(all, of_warps[warp]);
    return all;
  }
};

inline constexpr std::int64_t kLongRow = 1024, kWarpsOfBlock = 8;

// The rows of a group are every row_step()-th from its first.
template <typename Group>
__device__ std::int64_t first_row() {
  return static_cast<std::int64_t>(blockIdx.x) * (blockDim.x / Group::kThreads) + threadIdx.x / Group::kThreads;
}
template <typename Group>
__device__ std::int64_t row_step() {
  return static_cast<std::int64_t>(gridDim.x) * (blockDim.x / Group::kThreads);
}

// Calls launch.operator()<Group>(blocks, threads) with what takes rows of this length: a warp each, or a block.
template <typename Launch>
void with_group(std::int64_t rows, std::int64_t columns, Launch&& launch) {
  constexpr std::int64_t kMostBlocks = 65536;  // a group takes several rows where there are more
  if (rows == 0) return;
  const bool is_long = columns > kLongRow;
  const std::int64_t wanted = is_long ? rows : (rows + kWarpsOfBlock - 1) / kWarpsOfBlock;
  const auto blocks = static_cast<unsigned>(wanted < kMostBlocks ? wanted : kMostBlocks);
  if (is_long) {
    launch.template operator()<BlockOfRow>(blocks, kRowThreads);
  } else {
    launch.template operator()<WarpOfRow>(blocks, static_cast<unsigned>(kWarpsOfBlock) * kWarp);
  }
}

}  // namespace tandem::cuda
