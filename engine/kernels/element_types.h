// Maps a tensor's element type to a C++ type, with arithmetic that is defined for every value.
#pragma once

#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

#include "engine/base/element_types.h"
#include "engine/tensor.h"

namespace tandem {

template <typename T>
T* elements(const Tensor& tensor) {
  return static_cast<T*>(tensor.data());
}

[[noreturn]] void throw_unsupported(const char* kernel, DType dtype);

// Calls function.operator()<T>() with the type of `dtype`. Throws RunError for types without arithmetic on a CPU.
template <typename Function>
void with_type(DType dtype, const char* kernel, Function&& function) {
  with_element_type(dtype, function, [&] { throw_unsupported(kernel, dtype); });
}

template <typename Function>
void with_floating_type(DType dtype, const char* kernel, Function&& function) {
  if (dtype == DType::f32) return function.template operator()<float>();
  if (dtype == DType::f64) return function.template operator()<double>();
  if (dtype == DType::f16) return function.template operator()<Float16>();
  if (dtype == DType::bf16) return function.template operator()<BFloat16>();
  throw_unsupported(kernel, dtype);
}

// Halves are computed as float and rounded when they are stored. Integers wrap around, as on every device; signed
// overflow would be undefined in C++.
template <typename T>
T wrapped_add(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  } else {
    return a + b;
  }
}
template <typename T>
T wrapped_subtract(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
  } else {
    return a - b;
  }
}
template <typename T>
T wrapped_multiply(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  } else {
    return a * b;
  }
}

// Truncates towards zero; values an integer type cannot hold become its nearest one, and NaN becomes 0.
template <typename To, typename From>
To converted(From value) {
  if constexpr (is_half<From> && !std::is_same_v<To, From>) {
    return converted<To>(static_cast<float>(value));
  } else {
    if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
      if (std::isnan(value)) return 0;
      // 2^digits is exact in every floating type used here; the largest integer itself may not be.
      const From bound = std::ldexp(From{1}, std::numeric_limits<To>::digits);
      if (value >= bound) return std::numeric_limits<To>::max();
      if (value <= (std::is_signed_v<To> ? -bound : From{0})) return std::numeric_limits<To>::min();
    }
    return static_cast<To>(value);
  }
}

}  // namespace tandem
