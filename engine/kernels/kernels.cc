#include "engine/kernels/kernels.h"

#include <fmt/format.h>

#include "engine/kernels/element_types.h"
#include "engine/kernels/elementwise.h"
#include "engine/kernels/gemm.h"
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
