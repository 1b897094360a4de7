// The operands of a kernel, whatever its kind: for code that treats all of them alike.
#pragma once

#include <variant>

#include "engine/op.h"

namespace tandem {

// Calls `visit` with each tensor of a kernel, empty ones included. The operands of a host function are not known.
template <typename Visit>
class OperandVisitor {
 public:
  explicit OperandVisitor(Visit& visit) : visit_(visit) {}

  void operator()(kernel::Gemm& kernel) const { all(kernel.c, kernel.a, kernel.b); }
  void operator()(kernel::Fill& kernel) const { all(kernel.to); }
  void operator()(kernel::Elementwise& kernel) const { all(kernel.to, kernel.a, kernel.b); }
  void operator()(kernel::ScaleAdd& kernel) const { all(kernel.to, kernel.a); }
  void operator()(kernel::SquareRoot& kernel) const { all(kernel.to, kernel.a); }
  void operator()(kernel::Relu& kernel) const { all(kernel.to, kernel.a); }
  void operator()(kernel::ReluGradient& kernel) const { all(kernel.to, kernel.gradient, kernel.output); }
  void operator()(kernel::AddBias& kernel) const { all(kernel.to, kernel.bias); }
  void operator()(kernel::SumAxis& kernel) const { all(kernel.to, kernel.a); }
  void operator()(kernel::SoftmaxCrossEntropy& kernel) const {
    all(kernel.loss, kernel.gradient, kernel.correct, kernel.logits, kernel.labels);
  }
  void operator()(kernel::Cast& kernel) const { all(kernel.to, kernel.a); }
  void operator()(kernel::ScatterRows& kernel) const { all(kernel.to, kernel.rows, kernel.indices); }
  void operator()(kernel::CopyBlocks& kernel) const { all(kernel.to, kernel.from); }
  void operator()(kernel::CopyMany& kernel) const {
    for (Tensor& tensor : kernel.to) visit_(tensor);
    for (Tensor& tensor : kernel.from) visit_(tensor);
  }
  void operator()(kernel::Largest& kernel) const { all(kernel.to, kernel.a); }
  void operator()(kernel::TopK& kernel) const { all(kernel.values, kernel.indices, kernel.a); }
  void operator()(kernel::BatchedGemm& kernel) const { all(kernel.c, kernel.a, kernel.b); }
  void operator()(kernel::Softmax& kernel) const { all(kernel.to, kernel.a); }
  void operator()(kernel::SoftmaxGradient& kernel) const { all(kernel.to, kernel.gradient, kernel.output); }
  void operator()(kernel::Normalize& kernel) const {
    all(kernel.to, kernel.statistics, kernel.a, kernel.scale, kernel.shift);
  }
  void operator()(kernel::NormalizeGradient& kernel) const {
    all(kernel.to, kernel.gradient, kernel.a, kernel.statistics, kernel.scale);
  }
  void operator()(kernel::NormalizeParameterGradients& kernel) const {
    all(kernel.of_scale, kernel.of_shift, kernel.gradient, kernel.a, kernel.statistics);
  }
  void operator()(kernel::Activate& kernel) const { all(kernel.to, kernel.a); }
  void operator()(kernel::ActivationGradient& kernel) const { all(kernel.to, kernel.gradient, kernel.a); }
  void operator()(kernel::Dropout& kernel) const { all(kernel.to, kernel.a); }
  void operator()(kernel::GatherRows& kernel) const { all(kernel.to, kernel.table, kernel.indices); }
  void operator()(kernel::AddRows& kernel) const { all(kernel.table, kernel.rows, kernel.indices); }
  void operator()(kernel::CopyStrided& kernel) const { all(kernel.to, kernel.from); }
  void operator()(kernel::Rotary& kernel) const { all(kernel.to, kernel.a); }
  void operator()(kernel::RowMaxima& kernel) const { all(kernel.maxima, kernel.logits); }
  void operator()(kernel::ExponentialSums& kernel) const {
    all(kernel.sums, kernel.targets, kernel.logits, kernel.maxima, kernel.labels);
  }
  void operator()(kernel::DividedCrossEntropy& kernel) const {
    all(kernel.loss, kernel.gradient, kernel.logits, kernel.maxima, kernel.sums, kernel.targets, kernel.labels);
  }
  void operator()(kernel::LargestOfRows& kernel) const { all(kernel.to, kernel.a); }
  void operator()(kernel::DispatchRows& kernel) const { all(kernel.to, kernel.a, kernel.weights); }
  void operator()(kernel::CombineRows& kernel) const { all(kernel.to, kernel.a, kernel.weights); }
  void operator()(kernel::ExpertWeightGradients& kernel) const {
    all(kernel.to, kernel.a, kernel.gradient, kernel.weights);
  }
  void operator()(kernel::RaiseMaximum& kernel) const { all(kernel.maximum, kernel.a); }
  void operator()(kernel::Quantise& kernel) const { all(kernel.to, kernel.a, kernel.maximum); }
  void operator()(kernel::Custom& kernel) const {
    for (Tensor& tensor : kernel.operands) visit_(tensor);
  }
  void operator()(kernel::HostFunction& /*kernel*/) const {}

 private:
  template <typename... Operands>
  void all(Operands&... operands) const {
    (visit_(operands), ...);
  }

  Visit& visit_;
};

template <typename Visit>
void for_each_operand(Kernel& kernel, Visit&& visit) {
  std::visit(OperandVisitor<std::remove_reference_t<Visit>>(visit), kernel);
}

// The same, for a `visit` that only looks.
template <typename Visit>
void for_each_operand(const Kernel& kernel, Visit&& visit) {
  for_each_operand(const_cast<Kernel&>(kernel), [&visit](const Tensor& operand) { visit(operand); });
}

// Whether a kernel is a function of this process, which no other process can call and no graph contains.
inline bool is_function(const Kernel& kernel) {
  return std::holds_alternative<kernel::HostFunction>(kernel) || std::holds_alternative<kernel::Custom>(kernel);
}

}  // namespace tandem
