#include "engine/kernels/kernels.h"

#include <fmt/format.h>

#include "engine/kernels/element_types.h"
#include "engine/kernels/elementwise.h"
#include "engine/kernels/gemm.h"
#include "engine/kernels/layers.h"
#include "engine/kernels/loss.h"
#include "engine/kernels/selection.h"

namespace tandem {
namespace {

struct Executor {
  void operator()(const kernel::Gemm& op) const { execute_gemm(op); }
  void operator()(const kernel::Fill& op) const { execute_fill(op); }
  void operator()(const kernel::Elementwise& op) const { execute_elementwise(op); }
  void operator()(const kernel::ScaleAdd& op) const { execute_scale_add(op); }
  void operator()(const kernel::SquareRoot& op) const { execute_square_root(op); }
  void operator()(const kernel::Relu& op) const { execute_relu(op); }
  void operator()(const kernel::ReluGradient& op) const { execute_relu_gradient(op); }
  void operator()(const kernel::AddBias& op) const { execute_add_bias(op); }
  void operator()(const kernel::SumAxis& op) const { execute_sum_axis(op); }
  void operator()(const kernel::SoftmaxCrossEntropy& op) const { execute_softmax_cross_entropy(op); }
  void operator()(const kernel::Cast& op) const { execute_cast(op); }
  void operator()(const kernel::ScatterRows& op) const { execute_scatter_rows(op); }
  void operator()(const kernel::CopyBlocks& op) const { execute_copy_blocks(op); }
  void operator()(const kernel::CopyMany& op) const { execute_copy_many(op); }
  void operator()(const kernel::Largest& op) const { execute_largest(op); }
  void operator()(const kernel::TopK& op) const { execute_top_k(op); }
  void operator()(const kernel::BatchedGemm& op) const { execute_batched_gemm(op); }
  void operator()(const kernel::Softmax& op) const { execute_softmax(op); }
  void operator()(const kernel::SoftmaxGradient& op) const { execute_softmax_gradient(op); }
  void operator()(const kernel::Normalize& op) const { execute_normalize(op); }
  void operator()(const kernel::NormalizeGradient& op) const { execute_normalize_gradient(op); }
  void operator()(const kernel::NormalizeParameterGradients& op) const { execute_normalize_parameter_gradients(op); }
  void operator()(const kernel::Activate& op) const { execute_activate(op); }
  void operator()(const kernel::ActivationGradient& op) const { execute_activation_gradient(op); }
  void operator()(const kernel::Dropout& op) const { execute_dropout(op); }
  void operator()(const kernel::Rotary& op) const { execute_rotary(op); }
  void operator()(const kernel::GatherRows& op) const { execute_gather_rows(op); }
  void operator()(const kernel::AddRows& op) const { execute_add_rows(op); }
  void operator()(const kernel::CopyStrided& op) const { execute_copy_strided(op); }
  void operator()(const kernel::RowMaxima& op) const { execute_row_maxima(op); }
  void operator()(const kernel::ExponentialSums& op) const { execute_exponential_sums(op); }
  void operator()(const kernel::DividedCrossEntropy& op) const { execute_divided_cross_entropy(op); }
  void operator()(const kernel::LargestOfRows& op) const { execute_largest_of_rows(op); }
  void operator()(const kernel::DispatchRows& op) const { execute_dispatch_rows(op); }
  void operator()(const kernel::CombineRows& op) const { execute_combine_rows(op); }
  void operator()(const kernel::ExpertWeightGradients& op) const { execute_expert_weight_gradients(op); }
  void operator()(const kernel::RaiseMaximum& op) const { execute_raise_maximum(op); }
  void operator()(const kernel::Quantise& op) const { execute_quantise(op); }
  void operator()(const kernel::Custom& op) const { op.functions->cpu(op.operands); }
  void operator()(const kernel::HostFunction& op) const { op.call(); }
};

// The compiler checks once whether the two overlap and vectorises both cases of each loop.
template <typename T>
void accumulate_elements(Reduction reduction, T* to, const T* from, std::int64_t count) {
  switch (reduction) {
    case Reduction::sum:
      for (std::int64_t i = 0; i < count; ++i) to[i] = wrapped_add(to[i], from[i]);
      return;
    case Reduction::maximum:
      for (std::int64_t i = 0; i < count; ++i) to[i] = to[i] < from[i] ? from[i] : to[i];
      return;
    case Reduction::minimum:
      for (std::int64_t i = 0; i < count; ++i) to[i] = from[i] < to[i] ? from[i] : to[i];
      return;
  }
}

}  // namespace

void throw_unsupported(const char* kernel, DType dtype) {
  throw RunError(fmt::format("{} has no implementation for {} on a CPU", kernel, name_of(dtype)));
}

void execute(const Kernel& kernel) {
  std::visit(Executor{}, kernel);
}

void accumulate(DType dtype, Reduction reduction, void* to, const void* from, std::int64_t count) {
  with_type(dtype, "a reduction", [&]<typename T>() {
    accumulate_elements(reduction, static_cast<T*>(to), static_cast<const T*>(from), count);
  });
}

}  // namespace tandem
