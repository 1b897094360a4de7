// Kernels that compute each element from those at its place, and the units in which threads load and store. For .cu
// files.
#pragma once

#include <initializer_list>

#include "engine/cuda/kernels/device_types.cuh"

namespace tandem::cuda {

// 16 bytes of elements: what a thread loads or stores in one access. Its elements are an array of their type and not
// bytes that are copied: nvcc 13.0 loses a byte of 16-bit elements where a loop over them is not unrolled (seen on an
// H100).
template <typename T>
class alignas(sizeof(uint4)) Pack {
 public:
  static constexpr int kElements = static_cast<int>(sizeof(uint4) / sizeof(T));

  Pack() = default;
  template <typename Index>
  __device__ Pack(const T* from, Index pack) : Pack(reinterpret_cast<const Pack*>(from)[pack]) {}
  template <typename Index>
  __device__ void store_to(T* to, Index pack) const {
    reinterpret_cast<Pack*>(to)[pack] = *this;
  }
  __device__ Wide<T> at(int i) const { return load(elements_ + i); }
  __device__ void set(int i, Wide<T> value) { store(elements_ + i, value); }

 private:
  T elements_[kElements];
};

inline bool are_aligned(std::initializer_list<const void*> places) {
  std::uintptr_t all = 0;
  for (const void* place : places) all |= reinterpret_cast<std::uintptr_t>(place);
  return all % sizeof(uint4) == 0;
}

// work.pack(p) for whole packs where memory is aligned, and work.element(i) for what is left.
template <typename Index, typename Work>
__global__ void __launch_bounds__(kThreads, 1) for_each(Work work, Index packs, Index count) {
  const Index first = static_cast<Index>(blockIdx.x) * blockDim.x + threadIdx.x;
  const Index step = static_cast<Index>(gridDim.x) * blockDim.x;
  for (Index p = first; p < packs; p += step) work.pack(p);
  for (Index i = packs * Work::kPack + first; i < count; i += step) work.element(i);
}

// Memory-bound kernels take less time with a thread for each pack than with a few that stride over the rest. A narrow
// index has room for two steps of so many blocks.
inline constexpr std::int64_t kMostBlocksOfPacks = 1 << 22;

template <typename Work>
void launch(cudaStream_t stream, std::int64_t count, bool is_aligned, const Work& work) {
  if (count == 0) return;
  const std::int64_t packs = is_aligned ? count / Work::kPack : 0;
  const unsigned blocks = blocks_for(packs == 0 ? count : packs, kMostBlocksOfPacks);
  if (fits_narrow(count)) {
    start(for_each<NarrowIndex, Work>, blocks, kThreads, stream, work, packs, count);
  } else {
    start(for_each<std::int64_t, Work>, blocks, kThreads, stream, work, packs, count);
  }
}

// to[i] = compute(in[0][i], in[1][i]). `to` may be one of the inputs: each thread reads before it writes.
template <typename T, int Inputs, typename Compute>
struct Map {
  static constexpr int kPack = Pack<T>::kElements;
  T* to;
  const T* in[Inputs];
  Compute compute;

  template <typename Index>
  __device__ void element(Index i) const {
    Wide<T> values[Inputs];
    for (int input = 0; input < Inputs; ++input) values[input] = load(in[input] + i);
    store(to + i, compute(values));
  }
  template <typename Index>
  __device__ void pack(Index p) const {
    Pack<T> packs[Inputs], result;
    for (int input = 0; input < Inputs; ++input) packs[input] = Pack<T>(in[input], p);
    for (int i = 0; i < kPack; ++i) {
      Wide<T> values[Inputs];
      for (int input = 0; input < Inputs; ++input) values[input] = packs[input].at(i);
      result.set(i, compute(values));
    }
    result.store_to(to, p);
  }
};

// An element, in the way of a Pack.
template <typename T>
class Single {
 public:
  static constexpr int kElements = 1;

  Single() = default;
  template <typename Index>
  __device__ Single(const T* from, Index i) : element_(from[i]) {}
  template <typename Index>
  __device__ void store_to(T* to, Index i) const {
    to[i] = element_;
  }
  __device__ Wide<T> at(int) const { return load(&element_); }
  __device__ void set(int, Wide<T> value) { store(&element_, value); }

 private:
  T element_;
};

// Calls function.operator()<Unit>() with the widest unit that rows of so many elements consist of, where all places are
// rows' beginnings.
template <typename T, typename Function>
void with_unit(std::int64_t columns, std::initializer_list<const void*> places, Function&& function) {
  if (columns % Pack<T>::kElements == 0 && are_aligned(places)) return function.template operator()<Pack<T>>();
  function.template operator()<Single<T>>();
}

}  // namespace tandem::cuda
