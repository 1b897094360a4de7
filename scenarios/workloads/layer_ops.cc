#include "scenarios/workloads/layer_ops.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tandem {

ScratchSizes scratch_sizes(const std::vector<Layer>& layers, std::int64_t batch, bool keeps_scores) {
  ScratchSizes sizes;
  for (const Layer& layer : layers) {
    if (const auto& gemm = layer.gemm) {
      const std::int64_t m = batch * gemm->count * gemm->rows;
      std::int64_t left = m * gemm->depth, result = m * gemm->columns;
      if (!keeps_scores && layer.scores == Layer::Scores::made) result = std::max(left, gemm->columns);
      if (!keeps_scores && layer.scores == Layer::Scores::read) left = std::max(result, gemm->depth);
      sizes.left = std::max(sizes.left, left);
      sizes.right = std::max(sizes.right, gemm->depth * gemm->columns);
      sizes.result = std::max(sizes.result, result);
    } else {
      sizes.left = std::max(sizes.left, batch * layer.output_elements());
      sizes.result = std::max(sizes.result, batch * layer.output_elements());
    }
  }
  return sizes;
}

LayerOps::LayerOps(Stream& stream, const Layer& layer, std::int64_t batch, DType dtype)
    : stream_(stream), dtype_(dtype) {
  if (!layer.gemm) return;
  const Layer::Gemm& gemm = *layer.gemm;
  m_ = batch * gemm.count * gemm.rows;
  n_ = gemm.columns;
  k_ = gemm.depth;
  if (gemm.batched) extra_elements_ = static_cast<double>((batch * gemm.count - 1) * gemm.columns * gemm.depth);
  extra_elements_ += static_cast<double>((gemm.experts - 1) * gemm.columns * gemm.depth);
  if (gemm.input_elements > 0) {
    const std::int64_t saved = batch * gemm.count * (gemm.rows * gemm.depth - gemm.input_elements);
    saved_elements_ = std::max(0.0, static_cast<double>(saved));
  }
}

namespace {

// Behind the first `behind` elements of the tensor, aligned, or at its begin, or nothing where it is too small.
Tensor view_behind(const Tensor& tensor, std::int64_t behind, std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t kAligned = 16;  // elements
  const std::int64_t count = rows * columns, all = tensor.element_count();
  if (count > all) return {};
  const std::int64_t first = (behind + kAligned - 1) / kAligned * kAligned;
  return tensor.view(first + count <= all ? first : 0, {rows, columns});
}

}  // namespace

Op LayerOps::product(LayerKernel::Part part, std::int64_t rows, const Scratch& scratch,
                     const Tensor& of_weights) const {
  if (scratch.keeps_left && part != LayerKernel::Part::product) return kept_product(part, rows, scratch, of_weights);
  Tensor left = scratch.left.view(0, {rows, k_});
  Tensor result = scratch.result.view(0, {rows, n_});
  if (part == LayerKernel::Part::weight_gradient) {
    Tensor to = (of_weights ? of_weights : scratch.right).view(0, {k_, n_});
    return op::gemm(std::move(to), std::move(left), std::move(result), true, false);
  }
  Tensor right = scratch.right.view(0, {k_, n_});
  if (part == LayerKernel::Part::product) return op::gemm(std::move(result), std::move(left), std::move(right));
  return op::gemm(std::move(left), std::move(result), std::move(right), false, true);
}

// Where the operands do not fit, an input gradient vanishes beside what is there.
Op LayerOps::kept_product(LayerKernel::Part part, std::int64_t rows, const Scratch& scratch,
                          const Tensor& of_weights) const {
  const Tensor input = scratch.left.view(0, {rows, k_});
  const Tensor kept = view_behind(scratch.left, rows * k_, rows, n_), made = scratch.result.view(0, {rows, n_});
  if (part == LayerKernel::Part::weight_gradient) {
    const Tensor to = (of_weights ? of_weights : scratch.right).view(0, {k_, n_});
    return op::gemm(to, input, kept ? kept : made, true, false);
  }
  const Tensor to = kept ? view_behind(scratch.result, 0, rows, k_) : Tensor();
  Op op = op::gemm(to ? to : input, to ? kept : made, scratch.right.view(0, {k_, n_}), false, true);
  if (!to) {
    auto& gemm = std::get<kernel::Gemm>(op.kernel);
    gemm.alpha = 1e-30;
    gemm.beta = 1;
  }
  return op;
}

Op LayerOps::product_of(LayerKernel::Part part, std::int64_t rows, const Scratch& scratch,
                        const Tensor& of_weights) const {
  const std::int64_t most = std::min(scratch.left.element_count() / k_, scratch.result.element_count() / n_);
  const std::int64_t repeats = (rows + most - 1) / most;
  const std::int64_t rows_of_one = rows / repeats;
  Op op = product(part, rows_of_one, scratch, of_weights);
  std::get<kernel::Gemm>(op.kernel).repeats = repeats;
  op.cost.flops = 2 * static_cast<double>(rows * n_) * static_cast<double>(k_);
  // Whatever is repeated or left out by a mask, each operand is moved once, and all of it.
  const auto size = static_cast<double>(size_of(scratch.left.dtype()));
  op.cost.bytes += static_cast<double>((m_ - rows_of_one) * (n_ + k_)) * size;
  return op;
}

double LayerOps::operand_elements(LayerKernel::Part part) const {
  const double input = static_cast<double>(m_ * k_) - saved_elements_, result = static_cast<double>(m_ * n_);
  const double weights = static_cast<double>(k_ * n_) + extra_elements_;
  if (part == LayerKernel::Part::product) return input + weights;
  return result + (part == LayerKernel::Part::weight_gradient ? input : weights);
}

void LayerOps::launch(const LayerKernel& kernel, const Scratch& scratch, const Tensor& of_weights, bool adds) const {
  const bool moves_memory =
      kernel.part == LayerKernel::Part::memory || kernel.part == LayerKernel::Part::table_gradient;
  if (moves_memory) return launch_memory(stream_, kernel, scratch.result, scratch.left);
  const auto rows = std::max<std::int64_t>(1, std::llround(static_cast<double>(m_) * kernel.computed));
  Op op = product_of(kernel.part, rows, scratch, of_weights);
  op.name = kernel.name;
  const double elements = extra_elements_ - saved_elements_ - kernel.unmoved;
  op.cost.bytes += elements * static_cast<double>(size_of(scratch.left.dtype()));
  if (adds && kernel.added > 0) {
    op.cost.bytes += kernel.added;
    if (of_weights) std::get<kernel::Gemm>(op.kernel).beta = 1;
  }
  op.cost.dtype = kernel.rate.value_or(dtype_);
  if (kernel.rate)
    op.cost.bytes -=
        operand_elements(kernel.part) * (static_cast<double>(size_of(dtype_)) - operand_bytes(*kernel.rate));
  op.cost.shape = kernel.shape;
  op.cost.kernels = kernel.kernels;
  op.cost.issue_s = kernel.issue_s;
  stream_.launch(std::move(op));
}

void launch_memory(Stream& stream, const LayerKernel& kernel, const Tensor& to, const Tensor& from, Category category) {
  if (kernel.bytes <= 0) return;
  const std::int64_t most = std::min(to.element_count(), from.element_count());
  auto left = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(kernel.bytes / 2) / static_cast<std::int64_t>(size_of(to.dtype())));
  const auto ops = static_cast<int>((left + most - 1) / most);
  int kernels = std::max(1, kernel.kernels - (ops - 1));
  for (; left > 0; left -= most) {
    const std::int64_t part = std::min(left, most);
    Op op = op::scale_add(to.flat_slice(0, part), from.flat_slice(0, part), 0.5, 0);
    op.name = kernel.name;
    op.category = category;
    op.cost.issue_s = kernel.issue_s / ops;
    op.cost.kernels = std::exchange(kernels, 1);
    op.cost.has_wide_loads = kernel.has_wide_loads;
    stream.launch(std::move(op));
  }
}

namespace {

constexpr std::int64_t kUsualMoment = 4;  // bytes

// Returns the bytes that an update moves for each parameter, including plain SGD's three passes; 0 for SGD itself. Adam
// and LAMB read the gradients once more for their norms; LAMB also reads parameters and updates for theirs. Moments are
// in f32.
double update_bytes(Optimizer optimizer, bool is_half) {
  switch (optimizer) {
    case Optimizer::sgd:
      return 0;
    case Optimizer::momentum:
      return is_half ? 32 : 20;
    case Optimizer::adam:
      return is_half ? 42 : 32;
    case Optimizer::lamb:
      return is_half ? 58 : 48;
  }
  TANDEM_UNREACHABLE("an optimizer");
}

}  // namespace

namespace {

// Returns how many bytes of an element kernels read and write that find the scales and write copies. A scale for
// the tensor needs a pass over it before; one from earlier steps does not (Transformer Engine, docs/features: FP8
// Current Scaling and FP8 Delayed Scaling). Blocks stay on the chip between the two; rows do, but columns need the
// pass.
double scaled_bytes(ScalingRecipe recipe, double from, double to, int copies) {
  constexpr double kScaleBytes = 4.0 / 128;
  switch (recipe) {
    case ScalingRecipe::tensorwise:
      return 2 * from + copies * to;
    case ScalingRecipe::delayed:
      return from + copies * to;
    case ScalingRecipe::rowwise:
      return (copies > 1 ? 3 : 1) * from + copies * to;
    case ScalingRecipe::blockwise:
      return from + copies * (to + kScaleBytes);
  }
  TANDEM_UNREACHABLE("a recipe");
}

}  // namespace

// With a scale for each tensor, one read is counted. Other recipes have the share of those bytes that they have of all.
LayerKernel quantisation(const Name& name, std::int64_t elements, DType from, DType to, ScalingRecipe recipe,
                         int copies) {
  const auto read = static_cast<double>(size_of(from)), written = operand_bytes(to);
  double bytes = read + copies * written;
  if (recipe != ScalingRecipe::tensorwise) {
    bytes *=
        scaled_bytes(recipe, read, written, copies) / scaled_bytes(ScalingRecipe::tensorwise, read, written, copies);
  }
  return {.name = name, .bytes = bytes * static_cast<double>(elements), .has_wide_loads = true};
}

LayerKernel transposition(const Name& name, std::int64_t elements, DType type) {
  return {.name = name, .bytes = 2 * operand_bytes(type) * static_cast<double>(elements), .has_wide_loads = true};
}

LayerKernel accumulation(std::int64_t parameters, DType stored) {
  constexpr double kPasses = 3;  // reads both, writes one
  return {.name = "accumulate",
          .bytes = kPasses * static_cast<double>(parameters) * static_cast<double>(size_of(stored))};
}

LayerKernel optimizer_state(const TrainingSettings& settings, std::int64_t parameters) {
  const Optimizer optimizer = settings.optimizer;
  const std::int64_t more = settings.moments.bytes(optimizer, kUsualMoment) - kUsualMoment * moments_of(optimizer);
  const double bytes = update_bytes(optimizer, size_of(settings.storage()) == 2) + 2 * static_cast<double>(more) -
                       3 * static_cast<double>(size_of(settings.parameter_type()));
  return {.name = "optimizer state", .bytes = std::max(0.0, bytes) * static_cast<double>(parameters)};
}

}  // namespace tandem
