// What nvcc brings and a C++ compiler does not: included before each .cu file that the emulation compiles.
#pragma once

// NOLINTBEGIN(bugprone-reserved-identifier, modernize-deprecated-headers): the names are CUDA's
#define __host__
#define __device__
#define __global__
#define __launch_bounds__(...)
#define __shared__ static thread_local  // a block runs on one host thread

#include <cuda_runtime.h>
#include <math.h>  // not <cmath>: kernels call exp and log of any type without a namespace

#include <chrono>
#include <cstring>
#include <functional>
#include <tuple>
#include <vector>

#include "engine/cuda/kernels/launch_turn.h"
#include "tests/cuda_emulation/block.h"

extern thread_local uint3 threadIdx, blockIdx;
extern thread_local dim3 blockDim, gridDim;

namespace tandem::emulation {

// Puts a kernel on a stream. `pointers`: what its parameters may point to. Errors show in cudaGetLastError().
void launch(const void* kernel, cudaStream_t stream, unsigned blocks, unsigned threads,
            std::vector<const void*> pointers, std::function<void()> body);

// What a kernel's globaltimer reads.
inline unsigned long long global_timer_ns() {
  return static_cast<unsigned long long>(std::chrono::steady_clock::now().time_since_epoch() /
                                         std::chrono::nanoseconds(1));
}

// A parameter's aligned words, any of which may be an address. What lies between its members is left over from others.
template <typename Parameter>
void add_words(Parameter parameter, std::vector<const void*>& words) {
  __builtin_clear_padding(&parameter);
  const auto* bytes = reinterpret_cast<const char*>(&parameter);
  for (std::size_t at = 0; at + sizeof(void*) <= sizeof(Parameter); at += sizeof(void*)) {
    const void* word = nullptr;
    std::memcpy(&word, bytes + at, sizeof(word));
    words.push_back(word);
  }
}

}  // namespace tandem::emulation

namespace tandem::cuda {

template <typename... Parameters, typename... Arguments>
void start(void (*kernel)(Parameters...), unsigned blocks, unsigned threads, cudaStream_t stream,
           Arguments... arguments) {
  const std::tuple<Parameters...> parameters{static_cast<Parameters>(arguments)...};
  std::vector<const void*> words;
  std::apply([&](const auto&... each) { (emulation::add_words(each, words), ...); }, parameters);
  const FirstLaunch first(reinterpret_cast<std::size_t>(kernel));
  emulation::launch(reinterpret_cast<const void*>(kernel), stream, blocks, threads, std::move(words),
                    [=] { std::apply(kernel, parameters); });
}

}  // namespace tandem::cuda

inline void __syncthreads() {
  tandem::emulation::synchronize_block();
}

inline void __syncwarp() {
  tandem::emulation::synchronize_warp();
}

template <typename T>
T __shfl_xor_sync(unsigned /*threads*/, T mine, unsigned mask) {
  unsigned long long word = 0;
  std::memcpy(&word, &mine, sizeof(T));
  word = tandem::emulation::exchange(word, mask);
  std::memcpy(&mine, &word, sizeof(T));
  return mine;
}

inline int atomicCAS(int* at, int expected, int desired) {
  __atomic_compare_exchange_n(at, &expected, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return expected;
}
// NOLINTEND(bugprone-reserved-identifier, modernize-deprecated-headers)
