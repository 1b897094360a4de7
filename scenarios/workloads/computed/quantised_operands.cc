#include "scenarios/workloads/computed/quantised_operands.h"

#include "engine/layer_ops.h"

namespace tandem {
namespace {

using Operand = QuantisedOperands::Operand;
using Summed = QuantisedOperands::Summed;

// Transformer Engine's default, DelayedScaling.amax_history_len.
constexpr std::int64_t kMaximaHistory = 1024;

// Blocks along what a product sums over; weights may have square ones, which serve both of their products.
op::QuantiseSettings operand_blocks(SmallFloat format, ScaleType scale, std::int64_t side, bool is_square,
                                    Summed summed) {
  const std::int64_t rows = is_square || summed == Summed::rows ? side : 1;
  const std::int64_t columns = is_square || summed == Summed::columns ? side : 1;
  return {.format = format, .scale = scale, .rows = rows, .columns = columns};
}

// Transformer Engine's defaults: gradients have e5m2 with tensors' scales and e4m3 with those of blocks, whose scales
// are powers of two. torchao's rowwise recipe: e4m3 for everything, scales are powers of two. NVFP4: blocks of weights
// are square (arXiv:2509.25149).
op::QuantiseSettings rounding_settings(const TrainingSettings& training, Operand operand, Summed summed) {
  const bool is_weights = operand == Operand::weights;
  switch (training.quantised) {
    case Quantised::mxfp8:
      return operand_blocks(SmallFloat::e4m3, ScaleType::e8m0, 32, false, summed);
    case Quantised::nvfp4:
      return operand_blocks(SmallFloat::e2m1, ScaleType::e4m3, 16, is_weights, summed);
    case Quantised::none:
    case Quantised::fp8:
      break;
  }
  switch (training.recipe) {
    case ScalingRecipe::rowwise:
      return operand_blocks(SmallFloat::e4m3, ScaleType::e8m0, 0, false, summed);
    case ScalingRecipe::blockwise:
      return operand_blocks(SmallFloat::e4m3, ScaleType::e8m0, 128, is_weights, summed);
    case ScalingRecipe::tensorwise:
    case ScalingRecipe::delayed:
      break;
  }
  return {.format = operand == Operand::gradient ? SmallFloat::e5m2 : SmallFloat::e4m3};
}

// Whether a scale depends on the whole tensor.
bool has_tensor_scales(const TrainingSettings& training) {
  if (training.quantised == Quantised::nvfp4) return true;
  const bool is_of_tensor = training.recipe == ScalingRecipe::tensorwise || training.recipe == ScalingRecipe::delayed;
  return training.quantised == Quantised::fp8 && is_of_tensor;
}

}  // namespace

QuantisedOperands::QuantisedOperands(StageState& state, std::size_t layer)
    : state_(state),
      is_quantised_(state.training().quantised != Quantised::none && state.whole(layer).can_be_quantised()),
      rounding_(state.whole(layer).name + " quantise"),
      maximum_(state.whole(layer).name + " maximum") {
  if (!is_quantised_ || !has_tensor_scales(state.training())) return;
  Device& device = state.device();
  for (std::vector<Maxima>& of_experts : maxima_) {
    of_experts.resize(static_cast<std::size_t>(state.layer(layer).gemm->experts));
    for (Maxima& one : of_experts) {
      one.now = device.allocate(DType::f32, {1});
      if (state.training().recipe != ScalingRecipe::delayed) continue;
      one.history = device.allocate(DType::f32, {kMaximaHistory});
      state.launch(op::fill(one.history, 0), maximum_);
    }
  }
}

// A layer without experts has one matrix of two dimensions.
Tensor QuantisedOperands::rounded(Operand operand, const Tensor& matrix, Summed summed) {
  if (!is_quantised_) return matrix;
  const auto number = static_cast<std::size_t>(operand);
  const op::QuantiseSettings settings = rounding_settings(state_.training(), operand, summed);
  const Tensor to = state_.scratch(StageState::Use::quantised, matrix.element_count(), static_cast<int>(number))
                        .view(0, matrix.shape());
  std::vector<Maxima>& maxima = maxima_[number];
  if (maxima.empty()) {
    state_.launch(op::quantise(to, matrix, settings), rounding_);
    return to;
  }
  const Shape& shape = matrix.shape();
  const std::int64_t rows = shape[shape.rank() - 2], columns = shape[shape.rank() - 1];
  for (std::size_t i = 0; i < maxima.size(); ++i) {
    const auto of_one = [&](const Tensor& all) {
      return all.view(static_cast<std::int64_t>(i) * rows * columns, {rows, columns});
    };
    const Tensor maximum = maximum_of(maxima[i], of_one(matrix));
    state_.launch(op::quantise(of_one(to), of_one(matrix), settings, maximum), rounding_);
  }
  return to;
}

Tensor QuantisedOperands::maximum_of(Maxima& maxima, const Tensor& matrix) {
  if (maxima.history) return delayed_maximum(maxima, matrix);
  state_.launch(op::fill(maxima.now, 0), maximum_);
  state_.launch(op::raise_maximum(maxima.now, matrix), maximum_);
  return maxima.now;
}

// The first use in a step makes the maximum of those of earlier steps, and begins that of this step in the place of the
// oldest one. All micro-batches of a step have the same scale.
Tensor QuantisedOperands::delayed_maximum(Maxima& maxima, const Tensor& matrix) {
  const Tensor of_step = maxima.history.slice(state_.step % kMaximaHistory, 1);
  if (maxima.step != state_.step) {
    state_.launch(op::fill(maxima.now, 0), maximum_);
    state_.launch(op::raise_maximum(maxima.now, maxima.history), maximum_);
    state_.launch(op::fill(of_step, 0), maximum_);
    maxima.step = state_.step;
  }
  state_.launch(op::raise_maximum(of_step, matrix), maximum_);
  return maxima.now;
}

std::int64_t dividing_block(Quantised quantised) {
  return quantised == Quantised::mxfp8 ? 32 : quantised == Quantised::nvfp4 ? 16 : 1;
}

}  // namespace tandem
