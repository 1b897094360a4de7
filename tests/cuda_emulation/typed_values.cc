#include "tests/cuda_emulation/typed_values.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace tandem {
namespace {

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
      return function.template operator()<std::int64_t>();
    case DType::i32:
      return function.template operator()<std::int32_t>();
    default:
      return function.template operator()<std::uint8_t>();
  }
}

template <typename T>
T* elements(const Tensor& tensor) {
  return static_cast<T*>(tensor.data());
}

// to[i] = make(), as a type that a T can be made of.
template <typename Make>
void generate(const Tensor& tensor, Make&& make) {
  with_type(tensor.dtype(), [&]<typename T>() {
    for (std::int64_t i = 0; i < tensor.element_count(); ++i) elements<T>(tensor)[i] = static_cast<T>(make(T{}));
  });
}

template <typename T>
double as_double(T value) {
  if constexpr (sizeof(T) == 2) {
    return static_cast<float>(value);
  } else {
    return static_cast<double>(value);
  }
}

float small(std::mt19937_64& random) {
  return static_cast<float>(static_cast<std::int64_t>(random() % 8001) - 4000) / 1000.0F;
}

bool agree(double actual, double expected, double tolerance) {
  if (std::isnan(actual) || std::isnan(expected)) return std::isnan(actual) && std::isnan(expected);
  if (actual == expected) return true;
  return std::abs(actual - expected) <= tolerance * std::max(1.0, std::abs(expected));
}

}  // namespace

void fill_random(const Tensor& tensor, std::mt19937_64& random) {
  generate(tensor, [&]<typename T>(T) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(random());
    } else {
      return small(random);
    }
  });
}

void fill_divisors(const Tensor& tensor, std::mt19937_64& random) {
  generate(tensor, [&]<typename T>(T) {
    if constexpr (std::is_integral_v<T>) {
      const T value = static_cast<T>(random() % 4 == 0 ? -1 : static_cast<std::int64_t>(random() % 100) - 50);
      return value == 0 ? T{1} : value;
    } else {
      const float value = small(random);
      return value < 0 ? value - 0.5F : value + 0.5F;
    }
  });
}

void fill_below(const Tensor& tensor, std::int64_t bound, std::mt19937_64& random) {
  generate(tensor, [&](auto) { return static_cast<float>(random() % static_cast<std::uint64_t>(bound)); });
}

void fill_special(const Tensor& tensor) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> special = {0.0F,           -0.0F,     0.5F,          -0.5F,
                                      1.9F,           -1.9F,     127.0F,        255.0F,
                                      255.5F,         256.0F,    2147483520.0F, 2147483648.0F,
                                      -2147483648.0F, -2.2e9F,   9.2e18F,       9.3e18F,
                                      -9.3e18F,       kInfinity, -kInfinity,    std::numeric_limits<float>::quiet_NaN(),
                                      65504.0F,       65520.0F,  3.4e38F,       1e-8F};
  std::size_t next = 0;
  std::mt19937_64 random(1);
  generate(tensor, [&]<typename T>(T) {
    const std::size_t i = next++;
    if constexpr (std::is_integral_v<T>) {
      if (i == 0) return std::numeric_limits<T>::max();
      if (i == 1) return std::numeric_limits<T>::min();
      return static_cast<T>(random());
    } else {
      return special[i % special.size()];
    }
  });
}

bool is_half_type(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16;
}

void convert(const Tensor& to, const Tensor& from) {
  with_type(from.dtype(), [&]<typename From>() {
    with_type(to.dtype(), [&]<typename To>() {
      for (std::int64_t i = 0; i < from.element_count(); ++i) {
        if constexpr (std::is_same_v<From, To>) {
          elements<To>(to)[i] = elements<From>(from)[i];
        } else {
          elements<To>(to)[i] = static_cast<To>(static_cast<float>(elements<From>(from)[i]));
        }
      }
    });
  });
}

std::string difference(const Tensor& actual, const Tensor& expected, double tolerance) {
  std::string text;
  with_type(actual.dtype(), [&]<typename T>() {
    for (std::int64_t i = 0; i < actual.element_count() && text.empty(); ++i) {
      const T is = elements<T>(actual)[i], should = elements<T>(expected)[i];
      bool agrees = false;
      if constexpr (std::is_integral_v<T>) {
        agrees = is == should;
      } else {
        agrees = agree(as_double(is), as_double(should), tolerance);
      }
      if (!agrees) text = fmt::format("element {}: {} instead of {}", i, as_double(is), as_double(should));
    }
  });
  return text;
}

}  // namespace tandem
