// What the tests of layers' kernels share: operands of every floating-point type, their values as doubles, and
// gradients by finite differences.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "engine/kernels/kernels.h"
#include "engine/layer_ops.h"
#include "tests/engine/host_tensor.h"

namespace tandem {

using FloatingTypes = testing::Types<float, double, Float16, BFloat16>;

// One rounding, relative to the larger of 1 and the value; for f32 and f64 that of some operations.
template <typename T>
constexpr double tolerance_of() {
  if constexpr (std::is_same_v<T, double>) return 1e-13;
  if constexpr (std::is_same_v<T, float>) return 2e-6;
  return std::is_same_v<T, Float16> ? 0x1p-10 : 0x1p-7;
}

inline void set_values(const Tensor& tensor, const std::vector<double>& values) {
  execute(op::cast(tensor, host_tensor<double>({tensor.element_count()}, values)).kernel);
}

inline std::vector<double> doubles_of(const Tensor& tensor) {
  const Tensor wide = host_tensor(DType::f64, tensor.shape());
  execute(op::cast(wide, tensor).kernel);
  return values_of<double>(wide);
}

// Values from -2 to 2, other ones for other seeds.
inline Tensor varied(DType dtype, Shape shape, unsigned seed) {
  Tensor tensor = host_tensor(dtype, shape);
  std::vector<double> values;
  unsigned state = seed * 7919 + 17;
  for (std::int64_t i = 0; i < shape.element_count(); ++i) {
    state = state * 1664525 + 1013904223;
    values.push_back(static_cast<double>(state >> 8) / (1 << 22) - 2);
  }
  set_values(tensor, values);
  return tensor;
}

// Labels or indices.
inline Tensor whole(const std::vector<std::int32_t>& values) {
  return host_tensor<std::int32_t>({static_cast<std::int64_t>(values.size())}, values);
}

template <typename T>
void expect_near(const Tensor& actual, const std::vector<double>& expected, const std::string& what) {
  const std::vector<double> values = doubles_of(actual);
  ASSERT_EQ(values.size(), expected.size()) << what;
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_NEAR(values[i], expected[i], tolerance_of<T>() * std::max(1.0, std::abs(expected[i])))
        << what << ", element " << i;
  }
}

inline double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// `gradient` must be that of objective(), a function of `input` among others. All of f64.
inline void expect_gradient(const Tensor& gradient, const Tensor& input, const std::function<double()>& objective,
                            const std::string& what) {
  constexpr double kStep = 1e-5;
  for (std::size_t i = 0; i < input.values<double>().size(); ++i) {
    double& x = input.values<double>()[i];
    const double before = x;
    x = before + kStep;
    const double above = objective();
    x = before - kStep;
    const double below = objective();
    x = before;
    EXPECT_NEAR(gradient.values<double>()[i], (above - below) / (2 * kStep), 1e-8) << what << ", element " << i;
  }
}

}  // namespace tandem
