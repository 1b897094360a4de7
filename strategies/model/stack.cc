#include "strategies/model/stack.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "topologies/base/error.h"

namespace tandem {
namespace {

constexpr PointwiseTraffic kNothing{};
constexpr double kMask = 1.0 / 8;  // a bit an element

// Every operation by itself: it reads its operands and writes its result. GELU is its formula written out, operation by
// operation; dropout draws 4-byte random numbers in a kernel of its own; norms of rows compute in f32.
PointwiseTraffic unfused(Pointwise operation) {
  switch (operation) {
    case Pointwise::bias:
      return {{2, 0, 1}, {1, 0, 1}};
    case Pointwise::batch_norm:
      return {{3, 0, 1}, {5, 0, 1}};
    case Pointwise::relu:
      return {{2, 0, 1}, {3, 0, 1}};
    case Pointwise::residual:
      return {{3, 0, 1}, {3, 0, 1}};
    case Pointwise::gelu:
      return {{18, 0, 8}, {35, 0, 14}};
    case Pointwise::dropout:
      return {{3, 16, 3}, {3, 0, 1}};
    case Pointwise::layer_norm:
      return {{0, 32, 4}, {13, 0, 5}};
    case Pointwise::scale:
    case Pointwise::mask:
      return {{2, 0, 1}, {2, 0, 1}};
    case Pointwise::softmax:
      return {{4, 0, 2}, {6, 0, 2}};
    case Pointwise::transpose:
      return {{2, 0, 1}, {2, 0, 1}};
    case Pointwise::cross_entropy:
      return {{5, 0, 3}, {3, 0, 1}};
    case Pointwise::rms_norm:  // square, mean, scale in f32, weight
      return {{0, 24, 4}, {11, 0, 5}};
    case Pointwise::gate:  // the activation and the product
      return {{5, 0, 2}, {8, 0, 3}};
    case Pointwise::rotary:  // two products and their sum
      return {{6, 0, 3}, {6, 0, 3}};
  }
  TANDEM_UNREACHABLE("an operation or a fusion");
}

PointwiseTraffic fused_by_hand(Pointwise operation) {
  switch (operation) {
    case Pointwise::relu:  // in the kernel of the norm or the product; keeps a mask
      return {{0, kMask, 0}, {0, kMask, 0}};
    case Pointwise::residual:
      return {{1, 0, 0}, {4, 0, 1}};
    case Pointwise::gelu:
      return {{2, 0, 1}, {3, 0, 1}};
    case Pointwise::dropout:
      return {{2.5, 0, 1}, {2.5, 0, 1}};
    case Pointwise::layer_norm:
      return {{4, 0, 1}, {4, 0, 2}};
    case Pointwise::scale:
      return {{2, 0, 1}, {1, 0, 0}};
    case Pointwise::mask:
      return {{2, 0, 1}, {}};
    case Pointwise::softmax:
      return {{2, 0, 1}, {4, 0, 1}};
    case Pointwise::rms_norm:
      return {{4, 0, 1}, {4, 0, 2}};
    case Pointwise::gate:
      return {{3, 0, 1}, {5, 0, 1}};
    case Pointwise::rotary:
      return {{2, 0, 1}, {2, 0, 1}};
    case Pointwise::bias:
    case Pointwise::batch_norm:
    case Pointwise::transpose:
    case Pointwise::cross_entropy:
      return unfused(operation);
  }
  TANDEM_UNREACHABLE("an operation or a fusion");
}

PointwiseTraffic compiled(Pointwise operation) {
  switch (operation) {
    case Pointwise::bias:
      return {{0, 0, 0}, {1, 0, 1}};
    case Pointwise::residual:
      return {{1, 0, 0}, {2, 0, 0}};
    case Pointwise::dropout:
      return {{2.5, 0, 1}, {1.5, 0, 0}};
    case Pointwise::layer_norm:
    case Pointwise::rms_norm:
      return {{3, 0, 1}, {3, 0, 1}};
    case Pointwise::scale:
    case Pointwise::mask:
      return kNothing;
    case Pointwise::softmax:
      return {{2, 0, 1}, {4, 0, 1}};
    case Pointwise::batch_norm:
    case Pointwise::relu:
    case Pointwise::gelu:
    case Pointwise::transpose:
    case Pointwise::cross_entropy:
    case Pointwise::gate:
    case Pointwise::rotary:
      return fused_by_hand(operation);
  }
  TANDEM_UNREACHABLE("an operation or a fusion");
}

// Batch norm reads its input once, and backward that and the gradients. The gradients of a sum are masked by its norm,
// and those of both operands added by the product that makes the second.
PointwiseTraffic persistent(Pointwise operation) {
  switch (operation) {
    case Pointwise::batch_norm:
      return {{2, 0, 1}, {3, 0, 1}};
    case Pointwise::residual:
      return {{1, 0, 0}, {2, 0, 0}};
    default:
      return fused_by_hand(operation);
  }
}

// The convolution before a norm makes its sums, the one behind it applies it. A sum of two norms is a kernel that
// applies both. Backward, what makes the gradients of the norm's result also makes their sums, for which it reads the
// input.
PointwiseTraffic in_convolutions(Pointwise operation) {
  switch (operation) {
    case Pointwise::batch_norm:
      return {{0, 0, 0}, {3, 0, 1}};
    case Pointwise::residual:
      return {{3, 0, 1}, {2, 0, 0}};
    default:
      return fused_by_hand(operation);
  }
}

// One kernel reads the scores and writes probabilities and a mask.
PointwiseTraffic fused_attention(Pointwise operation) {
  if (operation == Pointwise::softmax) return {{2, 0, 1}, {3, 0, 1}};
  if (operation == Pointwise::dropout) return {{0.5, 0, 0}, {0.5, 0, 0}};
  return kNothing;
}

// For each expert a product of the bias with the weights of its rows, in f32, and a sum with the rows; then all
// experts' sums are joined and converted. Backward the same for the rows, the bias and the weights, whose gradients are
// sums.
PointwiseTraffic bias_of_separate_experts(std::int64_t experts) {
  const auto each = static_cast<int>(experts);
  return {{2, 24, 2 * each + 2}, {4, 32, 5 * each + 2}};
}

}  // namespace

const std::vector<std::pair<std::string, Fusion>>& fusions() {
  static const std::vector<std::pair<std::string, Fusion>> words = {{"none", Fusion::none},
                                                                    {"hand", Fusion::hand},
                                                                    {"compiled", Fusion::compiled},
                                                                    {"persistent", Fusion::persistent},
                                                                    {"in_convolutions", Fusion::in_convolutions}};
  return words;
}

const std::string& name_of(Fusion fusion) {
  return std::ranges::find(fusions(), fusion, &std::pair<std::string, Fusion>::second)->first;
}

std::string Stack::text() const {
  static constexpr std::array kLayouts{"nchw", "nhwc"};
  std::string text =
      fmt::format("layout {}, fusion {}", kLayouts.at(static_cast<std::size_t>(layout)), name_of(fusion));
  if (attention == AttentionKernels::fused_softmax) text += ", attention fused_softmax";
  if (attention == AttentionKernels::flash) text += ", attention flash";
  if (attention == AttentionKernels::flash_1) text += ", attention flash_1";
  if (accumulation == Accumulation::in_products) text += ", accumulation in_products";
  if (loss == Loss::fused) text += ", loss fused";
  if (experts == ExpertKernels::separate) text += ", experts separate";
  if (experts == ExpertKernels::fused) text += ", experts fused";
  if (block_host_s > 0) text += fmt::format(", host {} us a block", 1e6 * block_host_s);
  return text;
}

PointwiseTraffic traffic_of(Pointwise operation, const Stack& stack, bool in_attention) {
  if (in_attention && !stack.keeps_scores()) return kNothing;
  if (in_attention && stack.attention == AttentionKernels::fused_softmax) return fused_attention(operation);
  if (operation == Pointwise::cross_entropy && stack.loss == Loss::fused) return {{1, 0, 1}, {2, 0, 1}};
  switch (stack.fusion) {
    case Fusion::none:
      return unfused(operation);
    case Fusion::hand:
      return fused_by_hand(operation);
    case Fusion::compiled:
      return compiled(operation);
    case Fusion::persistent:
      return persistent(operation);
    case Fusion::in_convolutions:
      return in_convolutions(operation);
  }
  TANDEM_UNREACHABLE("an operation or a fusion");
}

// Unfused, a product and a sum. Else a kernel with the activation behind it, whose gradients read its result, or part
// of the convolution before it, as NVIDIA's Apex has it (ConvFrozenScaleBiasReLU).
PointwiseTraffic traffic_of_frozen_norm(const Stack& stack) {
  if (stack.fusion == Fusion::none) return {{4, 0, 2}, {2, 0, 1}};
  if (stack.fusion == Fusion::in_convolutions) return {{0, 0, 0}, {3, 0, 1}};
  return {{2, 0, 1}, {3, 0, 1}};
}

PointwiseTraffic traffic_of_experts(Pointwise operation, const Stack& stack, std::int64_t experts) {
  if (stack.experts == ExpertKernels::fused) return kNothing;
  if (stack.experts == ExpertKernels::separate && operation == Pointwise::bias) {
    return bias_of_separate_experts(experts);
  }
  return traffic_of(operation, stack, false);
}

}  // namespace tandem
