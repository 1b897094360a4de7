// The fields of a kernel that are no operands, whatever its kind: for code that treats all of them alike.
#pragma once

#include <cstdint>
#include <variant>

#include "engine/op.h"

namespace tandem {

// Calls visit(value) for each field of a kernel that is no tensor. Kernels that are functions have no fields to visit.
template <typename Visit>
class FieldVisitor {
 public:
  explicit FieldVisitor(Visit& visit) : visit_(visit) {}

  void operator()(kernel::Gemm& kernel) const {
    all(kernel.m, kernel.n, kernel.k, kernel.transpose_a, kernel.transpose_b, kernel.alpha, kernel.beta,
        kernel.repeats);
  }
  void operator()(kernel::Fill& kernel) const { all(kernel.value); }
  void operator()(kernel::Elementwise& kernel) const { all(kernel.operation); }
  void operator()(kernel::ScaleAdd& kernel) const { all(kernel.alpha, kernel.beta); }
  void operator()(kernel::SquareRoot& kernel) const { all(kernel.inside, kernel.outside); }
  void operator()(kernel::Relu& /*kernel*/) const {}
  void operator()(kernel::ReluGradient& /*kernel*/) const {}
  void operator()(kernel::AddBias& /*kernel*/) const {}
  void operator()(kernel::SumAxis& kernel) const { all(kernel.axis); }
  void operator()(kernel::SoftmaxCrossEntropy& kernel) const { all(kernel.loss_scale, kernel.gradient_scale); }
  void operator()(kernel::Cast& /*kernel*/) const {}
  void operator()(kernel::ScatterRows& kernel) const { all(kernel.operation); }
  void operator()(kernel::CopyBlocks& kernel) const {
    all(kernel.count, kernel.elements, kernel.to_first, kernel.to_stride, kernel.from_first, kernel.from_stride);
  }
  void operator()(kernel::CopyMany& kernel) const {
    std::uint64_t count = kernel.to.size();
    visit_(count);
    if (count == kernel.to.size()) return;
    kernel.to.resize(count);
    kernel.from.resize(count);
  }
  void operator()(kernel::Largest& kernel) const { all(kernel.is_of_magnitudes); }
  void operator()(kernel::TopK& /*kernel*/) const {}
  void operator()(kernel::BatchedGemm& kernel) const {
    all(kernel.count, kernel.m, kernel.n, kernel.k, kernel.transpose_a, kernel.transpose_b, kernel.alpha, kernel.beta);
  }
  void operator()(kernel::Softmax& kernel) const {
    all(kernel.settings.scale, kernel.settings.queries, kernel.settings.first_query);
  }
  void operator()(kernel::SoftmaxGradient& kernel) const { all(kernel.scale); }
  void operator()(kernel::Normalize& kernel) const { all(kernel.epsilon); }
  void operator()(kernel::NormalizeGradient& kernel) const { all(kernel.is_centered); }
  void operator()(kernel::NormalizeParameterGradients& kernel) const { all(kernel.accumulates); }
  void operator()(kernel::Activate& kernel) const { all(kernel.activation); }
  void operator()(kernel::ActivationGradient& kernel) const { all(kernel.activation); }
  void operator()(kernel::Dropout& kernel) const {
    kernel::ElementNumbers& numbers = kernel.numbers;
    all(kernel.rate, kernel.seed, numbers.first, numbers.offset, numbers.sizes, numbers.strides);
  }
  void operator()(kernel::GatherRows& kernel) const { all(kernel.first, kernel.accumulates); }
  void operator()(kernel::AddRows& kernel) const { all(kernel.first); }
  void operator()(kernel::CopyStrided& kernel) const {
    kernel::StridedCopy& copy = kernel.copy;
    all(copy.sizes, copy.to_first, copy.from_first, copy.to_strides, copy.from_strides);
  }
  void operator()(kernel::Rotary& kernel) const {
    kernel::RotarySettings& settings = kernel.settings;
    all(settings.width, settings.positions, settings.first, settings.base, settings.backward);
  }
  void operator()(kernel::RowMaxima& /*kernel*/) const {}
  void operator()(kernel::ExponentialSums& kernel) const { all(kernel.first); }
  void operator()(kernel::DividedCrossEntropy& kernel) const {
    all(kernel.first, kernel.loss_scale, kernel.gradient_scale);
  }
  void operator()(kernel::LargestOfRows& kernel) const { all(kernel.count); }
  void operator()(kernel::DispatchRows& kernel) const { all(kernel.is_scaled); }
  void operator()(kernel::CombineRows& kernel) const { all(kernel.is_scaled); }
  void operator()(kernel::ExpertWeightGradients& /*kernel*/) const {}
  void operator()(kernel::RaiseMaximum& /*kernel*/) const {}
  void operator()(kernel::Quantise& kernel) const {
    kernel::QuantiseSettings& settings = kernel.settings;
    all(settings.format, settings.scale, settings.rows, settings.columns);
  }
  void operator()(kernel::Custom& /*kernel*/) const { TANDEM_UNREACHABLE("a function has no fields"); }
  void operator()(kernel::HostFunction& /*kernel*/) const { TANDEM_UNREACHABLE("a function has no fields"); }

 private:
  template <typename... Fields>
  void all(Fields&... fields) const {
    (visit_(fields), ...);
  }

  Visit& visit_;
};

template <typename Visit>
void for_each_field(Kernel& kernel, Visit&& visit) {
  std::visit(FieldVisitor<std::remove_reference_t<Visit>>(visit), kernel);
}

// The same, for a `visit` that only looks.
template <typename Visit>
void for_each_field(const Kernel& kernel, Visit&& visit) {
  for_each_field(const_cast<Kernel&>(kernel), [&visit](const auto& field) { visit(field); });
}

}  // namespace tandem
