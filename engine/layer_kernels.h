// The kernels of transformer layers, as plain data: part of the variant in engine/op.h. engine/layer_ops.h says what
// each computes, and builds the ops.
#pragma once

#include <array>
#include <cstdint>

#include "engine/base/small_float_types.h"
#include "engine/tensor.h"

namespace tandem::kernel {

struct BatchedGemm {
  Tensor c, a, b;
  std::int64_t count = 0, m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  double alpha = 1, beta = 0;
};

inline constexpr double kFlopsOfSoftmax = 6;  // for each element that its row sees
struct SoftmaxSettings {
  double scale = 1;
  std::int64_t queries = 0, first_query = 0;
};
struct Softmax {
  Tensor to, a;
  SoftmaxSettings settings;
};
struct SoftmaxGradient {
  Tensor to, gradient, output;
  double scale = 1;
};

struct Normalize {
  Tensor to, statistics, a, scale, shift;
  double epsilon = 0;
};
struct NormalizeGradient {
  Tensor to, gradient, a, statistics, scale;
  bool is_centered = true;
};
struct NormalizeParameterGradients {
  Tensor of_scale, of_shift, gradient, a, statistics;
  bool accumulates = false;
};

enum class Activation : std::uint8_t { gelu, silu };
struct Activate {
  Activation activation = Activation::gelu;
  Tensor to, a;
};
struct ActivationGradient {
  Activation activation = Activation::gelu;
  Tensor to, gradient, a;
};

struct ElementNumbers {
  std::int64_t first = 0, offset = 0;
  std::array<std::int64_t, 4> sizes{1, 1, 1, 1}, strides{1, 0, 0, 0};
};
struct Dropout {
  Tensor to, a;
  double rate = 0;
  std::uint64_t seed = 0;
  ElementNumbers numbers;
};

struct GatherRows {
  Tensor to, table, indices;
  std::int64_t first = 0;
  bool accumulates = false;
};
struct AddRows {
  Tensor table, rows, indices;
  std::int64_t first = 0;
};

struct StridedCopy {
  std::array<std::int64_t, 4> sizes{1, 1, 1, 1};
  std::int64_t to_first = 0, from_first = 0;
  std::array<std::int64_t, 4> to_strides{}, from_strides{};
};
struct CopyStrided {
  Tensor to, from;
  StridedCopy copy;
};

struct RotarySettings {
  std::int64_t width = 0, positions = 1, first = 0;
  double base = 10'000;
  bool backward = false;
};
struct Rotary {
  Tensor to, a;
  RotarySettings settings;
};

struct RowMaxima {
  Tensor maxima, logits;
};
struct ExponentialSums {
  Tensor sums, targets, logits, maxima, labels;
  std::int64_t first = 0;
};
struct DividedCrossEntropy {
  Tensor loss{}, gradient{}, logits{}, maxima{}, sums{}, targets{}, labels{};
  std::int64_t first = 0;
  double loss_scale = 1, gradient_scale = 1;
};

struct LargestOfRows {
  Tensor to, a;
  std::int64_t count = 0;
};
struct DispatchRows {
  Tensor to, a, weights;
  bool is_scaled = false;
};
struct CombineRows {
  Tensor to, a, weights;
  bool is_scaled = false;
};
struct ExpertWeightGradients {
  Tensor to, a, gradient, weights;
};

struct RaiseMaximum {
  Tensor maximum, a;
};
// Blocks of `rows` x `columns` elements have a scale each; 0: all there are.
struct QuantiseSettings {
  SmallFloat format = SmallFloat::e4m3;
  ScaleType scale = ScaleType::f32;
  std::int64_t rows = 0, columns = 0;
};
struct Quantise {
  Tensor to, a, maximum;
  QuantiseSettings settings;
};

}  // namespace tandem::kernel
