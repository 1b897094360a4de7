#include "engine/sim/costs/measured_kernels.h"

namespace tandem::sim {

std::string_view measured_name(const Kernel& kernel) {
  if (const auto* activate = std::get_if<kernel::Activate>(&kernel)) {
    return activate->activation == kernel::Activation::gelu ? "gelu" : "silu";
  }
  if (const auto* gradient = std::get_if<kernel::ActivationGradient>(&kernel)) {
    return gradient->activation == kernel::Activation::gelu ? "gelu_gradient" : "silu_gradient";
  }
  if (std::holds_alternative<kernel::Softmax>(kernel)) return "row_softmax";
  if (std::holds_alternative<kernel::SoftmaxGradient>(kernel)) return "row_softmax_gradient";
  if (std::holds_alternative<kernel::Normalize>(kernel)) return "normalize";
  if (std::holds_alternative<kernel::NormalizeGradient>(kernel)) return "normalize_gradient";
  if (std::holds_alternative<kernel::NormalizeParameterGradients>(kernel)) return "normalize_parameters";
  if (std::holds_alternative<kernel::Dropout>(kernel)) return "dropout";
  if (std::holds_alternative<kernel::Rotary>(kernel)) return "rotary";
  if (std::holds_alternative<kernel::CopyStrided>(kernel)) return "copy_strided";
  if (std::holds_alternative<kernel::AddBias>(kernel)) return "add_bias";
  if (std::holds_alternative<kernel::CopyMany>(kernel)) return "copy_many";
  if (std::holds_alternative<kernel::Relu>(kernel)) return "relu";
  if (std::holds_alternative<kernel::ReluGradient>(kernel)) return "relu_gradient";
  if (std::holds_alternative<kernel::SoftmaxCrossEntropy>(kernel)) return "softmax";
  if (std::holds_alternative<kernel::SumAxis>(kernel)) return "sum_axis";
  return {};
}

// A causal softmax takes exponentials of what its rows see, and only writes the rest.
double measured_bytes(const Op& op) {
  if (!std::holds_alternative<kernel::Softmax>(op.kernel)) return op.cost.bytes;
  return op.cost.flops / kernel::kFlopsOfSoftmax * 2 * static_cast<double>(size_of(op.cost.dtype));
}

}  // namespace tandem::sim
