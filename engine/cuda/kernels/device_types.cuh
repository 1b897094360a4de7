// Maps element types to types on the GPU, with their arithmetic. For .cu files.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <limits>
#include <type_traits>

#include "engine/cuda/kernels/kernels.h"
#include "engine/cuda/kernels/launch_turn.h"
#include "topologies/base/error.h"

namespace tandem::cuda {

inline constexpr int kThreads = 256;

// A thread each, but at most so many blocks, by default enough to fill the largest GPU several times; kernels stride
// over the rest.
inline unsigned blocks_for(std::int64_t count, std::int64_t most = 4096) {
  const std::int64_t blocks = (count + kThreads - 1) / kThreads;
  return static_cast<unsigned>(blocks < most ? blocks : most);
}

// The index type of kernels where it suffices: 64-bit arithmetic takes several instructions. A thread's index may
// exceed the count by one step, so one bit is kept spare.
using NarrowIndex = unsigned;
inline bool fits_narrow(std::int64_t count) {
  return count < (std::int64_t{1} << 31);
}

// Starts a kernel. Where no nvcc compiles this, tests/cuda_emulation brings its own.
#ifdef __CUDACC__
template <typename... Parameters, typename... Arguments>
void start(void (*kernel)(Parameters...), unsigned blocks, unsigned threads, cudaStream_t stream,
           Arguments... arguments) {
  const FirstLaunch first(reinterpret_cast<std::size_t>(kernel));
  kernel<<<blocks, threads, 0, stream>>>(static_cast<Parameters>(arguments)...);
}
#endif

// Calls function.operator()<T>() with the type of `dtype`; f16 and bf16 are stored, not computed with.
template <typename Function>
void with_type(DType dtype, Function&& function) {
  switch (dtype) {
    case DType::f64:
      return function.template operator()<double>();
    case DType::f32:
      return function.template operator()<float>();
    case DType::f16:
      return function.template operator()<__half>();
    case DType::bf16:
      return function.template operator()<__nv_bfloat16>();
    case DType::i64:
      return function.template operator()<long long>();
    case DType::i32:
      return function.template operator()<int>();
    case DType::u8:
      return function.template operator()<unsigned char>();
    default:
      throw RunError("a kernel on tensors of tf32, which is a rate and no element type");
  }
}

// Calls function.operator()<T>() with a floating type.
template <typename Function>
void with_floating_type(DType dtype, Function&& function) {
  with_type(dtype, [&]<typename T>() {
    if constexpr (std::is_integral_v<T>) {
      throw RunError("a kernel of floating-point numbers on integers");
    } else {
      function.template operator()<T>();
    }
  });
}

template <typename T>
inline constexpr bool is_half = std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>;
// The type in which arithmetic on T is done.
template <typename T>
using Wide = std::conditional_t<is_half<T>, float, T>;

template <typename T>
__device__ Wide<T> load(const T* at) {
  return static_cast<Wide<T>>(*at);
}
template <typename T>
__device__ void store(T* at, Wide<T> value) {
  if constexpr (std::is_same_v<T, __half>) {
    *at = __float2half_rn(value);
  } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
    *at = __float2bfloat16_rn(value);
  } else {
    *at = value;
  }
}

// Unsigned, so that overflow wraps around.
template <typename W>
__device__ W add(W a, W b) {
  if constexpr (std::is_integral_v<W>) {
    return static_cast<W>(static_cast<unsigned long long>(a) + static_cast<unsigned long long>(b));
  } else {
    return a + b;
  }
}
template <typename W>
__device__ W subtract(W a, W b) {
  if constexpr (std::is_integral_v<W>) {
    return static_cast<W>(static_cast<unsigned long long>(a) - static_cast<unsigned long long>(b));
  } else {
    return a - b;
  }
}
template <typename W>
__device__ W multiply(W a, W b) {
  if constexpr (std::is_integral_v<W>) {
    return static_cast<W>(static_cast<unsigned long long>(a) * static_cast<unsigned long long>(b));
  } else {
    return a * b;
  }
}

__device__ inline void report(Fault* fault, Fault::Kind kind, long long index, long long value, long long bound) {
  if (atomicCAS(&fault->kind, static_cast<int>(Fault::none), static_cast<int>(kind)) != Fault::none) return;
  fault->index = index;
  fault->value = value;
  fault->bound = bound;
}

template <typename W>
__device__ W divide(W a, W b, Fault* fault) {
  if constexpr (std::is_integral_v<W>) {
    if (b == 0) {
      report(fault, Fault::division_by_zero, 0, 0, 0);
      return 0;
    }
    if constexpr (std::is_signed_v<W>) {
      if (b == -1) return subtract(W{0}, a);
    }
  }
  return a / b;
}

template <typename W>
__device__ W apply(Arithmetic operation, W a, W b, Fault* fault) {
  switch (operation) {
    case Arithmetic::add:
      return add(a, b);
    case Arithmetic::subtract:
      return subtract(a, b);
    case Arithmetic::multiply:
      return multiply(a, b);
    case Arithmetic::divide:
      return divide(a, b, fault);
    case Arithmetic::maximum:
      return a < b ? b : a;
    case Arithmetic::minimum:
      return b < a ? b : a;
  }
  return a;
}

// Truncates towards zero; values an integer type cannot hold become its nearest one, and NaN becomes 0.
template <typename To, typename From>
__host__ __device__ To converted(From value) {
  if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    if (value != value) return 0;
    constexpr To kMost = std::numeric_limits<To>::max(), kLeast = std::numeric_limits<To>::min();
    // The bound is a power of two, exact in every floating type; the largest integer itself may not be.
    constexpr From kBound = static_cast<From>(kMost / 2 + 1) * 2;
    if (value >= kBound) return kMost;
    if (value <= static_cast<From>(kLeast)) return kLeast;
  }
  return static_cast<To>(value);
}

}  // namespace tandem::cuda
