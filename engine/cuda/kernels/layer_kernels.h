// Launches of the kernels of layers, as kernels.h has those of others: engine/layer_ops.h says what each computes. All
// sums have one order, so that equal inputs give equal results.
#pragma once

#include "engine/base/small_float_types.h"
#include "engine/cuda/kernels/kernels.h"

namespace tandem::cuda {

struct SoftmaxArguments {
  void* to;
  const void* a;
  std::int64_t rows, columns;
  double scale;
  std::int64_t queries, first_query;  // of no queries: not causal
};
void launch_softmax(cudaStream_t stream, DType dtype, const SoftmaxArguments& arguments);

struct SoftmaxGradientArguments {
  void* to;
  const void *gradient, *output;
  std::int64_t rows, columns;
  double scale;
};
void launch_softmax_gradient(cudaStream_t stream, DType dtype, const SoftmaxGradientArguments& arguments);

// A norm without `shift` subtracts no mean. Statistics are of the type in which arithmetic is done.
struct NormArguments {
  void *to, *statistics;
  const void *a, *scale, *shift;
  std::int64_t rows, columns;
  double epsilon;
};
void launch_normalize(cudaStream_t stream, DType dtype, const NormArguments& arguments);

struct NormGradientArguments {
  void* to;
  const void *gradient, *a, *statistics, *scale;
  std::int64_t rows, columns;
  bool is_centered;
};
void launch_normalize_gradient(cudaStream_t stream, DType dtype, const NormGradientArguments& arguments);

// `of_shift` may be null.
struct NormParameterArguments {
  void *of_scale, *of_shift;
  const void *gradient, *a, *statistics;
  std::int64_t rows, columns;
  bool accumulates;
};
void launch_normalize_parameter_gradients(cudaStream_t stream, const Scratch& scratch, DType dtype,
                                          const NormParameterArguments& arguments);

// In the order of kernel::Activation.
enum class ActivationKind : std::uint8_t { gelu, silu };
void launch_activate(cudaStream_t stream, DType dtype, ActivationKind kind, void* to, const void* a,
                     std::int64_t count);
void launch_activation_gradient(cudaStream_t stream, DType dtype, ActivationKind kind, void* to, const void* gradient,
                                const void* a, std::int64_t count);

// Words below `bound` are dropped; others are multiplied by `factor`. `innermost`: the last axis that has several
// elements, 0 where all have one.
struct DropoutArguments {
  void* to;
  const void* a;
  std::int64_t count;
  std::uint64_t seed, bound;
  double factor;
  std::int64_t first, offset, sizes[4], strides[4];
  int innermost;
};
void launch_dropout(cudaStream_t stream, DType dtype, const DropoutArguments& arguments);

struct RotaryArguments {
  void* to;
  const void* a;
  std::int64_t rows, columns, width, positions, first;
  double base;
  bool backward;
};
void launch_rotary(cudaStream_t stream, DType dtype, const RotaryArguments& arguments);

struct GatherArguments {
  void* to;
  const void* table;
  const std::int32_t* indices;
  std::int64_t rows, columns, table_rows, first;
  bool accumulates;
};
void launch_gather_rows(cudaStream_t stream, DType dtype, const GatherArguments& arguments);

// Elements of `element_bytes`; `to` and `from` are the places of the first.
struct StridedArguments {
  void* to;
  const void* from;
  std::int64_t sizes[4], to_strides[4], from_strides[4];
};
void launch_copy_strided(cudaStream_t stream, std::int64_t element_bytes, const StridedArguments& arguments);

void launch_row_maxima(cudaStream_t stream, DType dtype, void* maxima, const void* logits, std::int64_t rows,
                       std::int64_t columns);

struct ExponentialSumArguments {
  void *sums, *targets;
  const void *logits, *maxima;
  const std::int32_t* labels;
  std::int64_t rows, columns, first;
};
void launch_exponential_sums(cudaStream_t stream, DType dtype, const ExponentialSumArguments& arguments);

// `loss` or `gradient` may be null.
struct DividedLossArguments {
  void *loss, *gradient;
  const void *logits, *maxima, *sums, *targets;
  const std::int32_t* labels;
  std::int64_t rows, columns, first;
  double loss_scale, gradient_scale;
};
void launch_divided_loss(cudaStream_t stream, DType dtype, const DividedLossArguments& arguments);

void launch_largest_of_rows(cudaStream_t stream, DType dtype, void* to, const void* a, std::int64_t rows,
                            std::int64_t columns, std::int64_t count);

// Rows of a matrix [rows, columns] and of one for each expert, by weights [rows, experts].
struct ExpertArguments {
  void* to;
  const void *a, *weights;
  std::int64_t experts, rows, columns;
  bool is_scaled;
};
void launch_dispatch_rows(cudaStream_t stream, DType dtype, const ExpertArguments& arguments);
void launch_combine_rows(cudaStream_t stream, DType dtype, const ExpertArguments& arguments);
// `to` is [rows, experts].
void launch_expert_weight_gradients(cudaStream_t stream, DType dtype, const ExpertArguments& arguments,
                                    const void* gradient);

// Elements are f32. `maximum` may be null.
void launch_raise_maximum(cudaStream_t stream, float* maximum, const float* a, std::int64_t count);
struct QuantiseArguments {
  float* to;
  const float *a, *maximum;
  std::int64_t matrices, rows, columns;
  std::int64_t block_rows, block_columns;  // above 0
  SmallFloat format;
  ScaleType scale;
};
void launch_quantise(cudaStream_t stream, const QuantiseArguments& arguments);

}  // namespace tandem::cuda
