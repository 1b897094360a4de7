#include "engine/cuda/device/layer_launch.h"

#include <algorithm>

#include "engine/base/philox.h"
#include "engine/cuda/kernels/layer_kernels.h"

namespace tandem::cuda {
namespace {

struct MatrixSize {
  std::int64_t rows, columns;
};

// Along the last axis.
MatrixSize size_of_rows(const Tensor& tensor) {
  const std::int64_t columns = tensor.shape()[tensor.shape().rank() - 1];
  return {columns == 0 ? 0 : tensor.element_count() / columns, columns};
}

void* data_of(const Tensor& tensor) {
  return tensor ? tensor.data() : nullptr;
}

const std::int32_t* numbers_of(const Tensor& tensor) {
  return static_cast<const std::int32_t*>(tensor.data());
}

ExpertArguments experts_of(const Tensor& to, const Tensor& a, const Tensor& weights, std::int64_t columns,
                           bool is_scaled) {
  return {.to = to.data(),
          .a = a.data(),
          .weights = weights.data(),
          .experts = weights.shape()[1],
          .rows = weights.shape()[0],
          .columns = columns,
          .is_scaled = is_scaled};
}

}  // namespace

void LayerLaunch::operator()(const kernel::Softmax& op) const {
  const auto [rows, columns] = size_of_rows(op.a);
  launch_softmax(at.stream, op.to.dtype(),
                 {.to = op.to.data(),
                  .a = op.a.data(),
                  .rows = rows,
                  .columns = columns,
                  .scale = op.settings.scale,
                  .queries = op.settings.queries,
                  .first_query = op.settings.first_query});
}

void LayerLaunch::operator()(const kernel::SoftmaxGradient& op) const {
  const auto [rows, columns] = size_of_rows(op.output);
  launch_softmax_gradient(at.stream, op.to.dtype(),
                          {.to = op.to.data(),
                           .gradient = op.gradient.data(),
                           .output = op.output.data(),
                           .rows = rows,
                           .columns = columns,
                           .scale = op.scale});
}

void LayerLaunch::operator()(const kernel::Normalize& op) const {
  const auto [rows, columns] = size_of_rows(op.a);
  launch_normalize(at.stream, op.to.dtype(),
                   {.to = op.to.data(),
                    .statistics = op.statistics.data(),
                    .a = op.a.data(),
                    .scale = op.scale.data(),
                    .shift = data_of(op.shift),
                    .rows = rows,
                    .columns = columns,
                    .epsilon = op.epsilon});
}

void LayerLaunch::operator()(const kernel::NormalizeGradient& op) const {
  const auto [rows, columns] = size_of_rows(op.a);
  launch_normalize_gradient(at.stream, op.to.dtype(),
                            {.to = op.to.data(),
                             .gradient = op.gradient.data(),
                             .a = op.a.data(),
                             .statistics = op.statistics.data(),
                             .scale = op.scale.data(),
                             .rows = rows,
                             .columns = columns,
                             .is_centered = op.is_centered});
}

void LayerLaunch::operator()(const kernel::NormalizeParameterGradients& op) const {
  const auto [rows, columns] = size_of_rows(op.a);
  launch_normalize_parameter_gradients(at.stream, at.scratch, op.a.dtype(),
                                       {.of_scale = op.of_scale.data(),
                                        .of_shift = data_of(op.of_shift),
                                        .gradient = op.gradient.data(),
                                        .a = op.a.data(),
                                        .statistics = op.statistics.data(),
                                        .rows = rows,
                                        .columns = columns,
                                        .accumulates = op.accumulates});
}

static_assert(static_cast<int>(ActivationKind::silu) == static_cast<int>(kernel::Activation::silu));

void LayerLaunch::operator()(const kernel::Activate& op) const {
  launch_activate(at.stream, op.to.dtype(), static_cast<ActivationKind>(op.activation), op.to.data(), op.a.data(),
                  op.to.element_count());
}

void LayerLaunch::operator()(const kernel::ActivationGradient& op) const {
  launch_activation_gradient(at.stream, op.to.dtype(), static_cast<ActivationKind>(op.activation), op.to.data(),
                             op.gradient.data(), op.a.data(), op.to.element_count());
}

void LayerLaunch::operator()(const kernel::Dropout& op) const {
  DropoutArguments arguments{.to = op.to.data(),
                             .a = op.a.data(),
                             .count = op.to.element_count(),
                             .seed = op.seed,
                             .bound = word_bound(op.rate),
                             .factor = 1 / (1 - op.rate),
                             .first = op.numbers.first,
                             .offset = op.numbers.offset,
                             .sizes = {},
                             .strides = {},
                             .innermost = 0};
  std::ranges::copy(op.numbers.sizes, arguments.sizes);
  std::ranges::copy(op.numbers.strides, arguments.strides);
  for (int axis = 1; axis < 4; ++axis) {
    if (arguments.sizes[axis] > 1) arguments.innermost = axis;
  }
  launch_dropout(at.stream, op.to.dtype(), arguments);
}

void LayerLaunch::operator()(const kernel::GatherRows& op) const {
  launch_gather_rows(at.stream, op.to.dtype(),
                     {.to = op.to.data(),
                      .table = op.table.data(),
                      .indices = numbers_of(op.indices),
                      .rows = op.indices.element_count(),
                      .columns = op.table.shape()[1],
                      .table_rows = op.table.shape()[0],
                      .first = op.first,
                      .accumulates = op.accumulates});
}

void LayerLaunch::operator()(const kernel::AddRows& op) const {
  launch_scatter(at.stream, at.scratch,
                 {.dtype = op.table.dtype(),
                  .replaces = false,
                  .operation = Arithmetic::add,
                  .to = op.table.data(),
                  .rows = op.rows.data(),
                  .indices = nullptr,
                  .to_rows = op.table.shape()[0],
                  .count = op.indices.element_count(),
                  .width = op.table.shape()[1],
                  .narrow_indices = numbers_of(op.indices),
                  .first = op.first},
                 at.fault);
}

void LayerLaunch::operator()(const kernel::CopyStrided& op) const {
  const auto size = static_cast<std::int64_t>(size_of(op.to.dtype()));
  StridedArguments arguments{.to = static_cast<std::byte*>(op.to.data()) + op.copy.to_first * size,
                             .from = static_cast<const std::byte*>(op.from.data()) + op.copy.from_first * size,
                             .sizes = {},
                             .to_strides = {},
                             .from_strides = {}};
  std::ranges::copy(op.copy.sizes, arguments.sizes);
  std::ranges::copy(op.copy.to_strides, arguments.to_strides);
  std::ranges::copy(op.copy.from_strides, arguments.from_strides);
  launch_copy_strided(at.stream, size, arguments);
}

void LayerLaunch::operator()(const kernel::Rotary& op) const {
  launch_rotary(at.stream, op.to.dtype(),
                {.to = op.to.data(),
                 .a = op.a.data(),
                 .rows = op.a.shape()[0],
                 .columns = op.a.shape()[1],
                 .width = op.settings.width,
                 .positions = op.settings.positions,
                 .first = op.settings.first,
                 .base = op.settings.base,
                 .backward = op.settings.backward});
}

void LayerLaunch::operator()(const kernel::RowMaxima& op) const {
  launch_row_maxima(at.stream, op.logits.dtype(), op.maxima.data(), op.logits.data(), op.logits.shape()[0],
                    op.logits.shape()[1]);
}

void LayerLaunch::operator()(const kernel::ExponentialSums& op) const {
  launch_exponential_sums(at.stream, op.logits.dtype(),
                          {.sums = op.sums.data(),
                           .targets = op.targets.data(),
                           .logits = op.logits.data(),
                           .maxima = op.maxima.data(),
                           .labels = numbers_of(op.labels),
                           .rows = op.logits.shape()[0],
                           .columns = op.logits.shape()[1],
                           .first = op.first});
}

void LayerLaunch::operator()(const kernel::DividedCrossEntropy& op) const {
  launch_divided_loss(at.stream, op.logits.dtype(),
                      {.loss = data_of(op.loss),
                       .gradient = data_of(op.gradient),
                       .logits = op.logits.data(),
                       .maxima = op.maxima.data(),
                       .sums = op.sums.data(),
                       .targets = op.targets.data(),
                       .labels = numbers_of(op.labels),
                       .rows = op.logits.shape()[0],
                       .columns = op.logits.shape()[1],
                       .first = op.first,
                       .loss_scale = op.loss_scale,
                       .gradient_scale = op.gradient_scale});
}

void LayerLaunch::operator()(const kernel::LargestOfRows& op) const {
  launch_largest_of_rows(at.stream, op.to.dtype(), op.to.data(), op.a.data(), op.a.shape()[0], op.a.shape()[1],
                         op.count);
}

void LayerLaunch::operator()(const kernel::DispatchRows& op) const {
  launch_dispatch_rows(at.stream, op.to.dtype(), experts_of(op.to, op.a, op.weights, op.a.shape()[1], op.is_scaled));
}

void LayerLaunch::operator()(const kernel::CombineRows& op) const {
  launch_combine_rows(at.stream, op.to.dtype(), experts_of(op.to, op.a, op.weights, op.to.shape()[1], op.is_scaled));
}

void LayerLaunch::operator()(const kernel::ExpertWeightGradients& op) const {
  launch_expert_weight_gradients(
      at.stream, op.to.dtype(), experts_of(op.to, op.a, op.weights, op.gradient.shape()[1], false), op.gradient.data());
}

void LayerLaunch::operator()(const kernel::RaiseMaximum& op) const {
  launch_raise_maximum(at.stream, static_cast<float*>(op.maximum.data()), static_cast<const float*>(op.a.data()),
                       op.a.element_count());
}

void LayerLaunch::operator()(const kernel::Quantise& op) const {
  const Shape& shape = op.a.shape();
  const std::int64_t rows = shape[shape.rank() - 2], columns = shape[shape.rank() - 1];
  if (op.a.element_count() == 0) return;
  launch_quantise(at.stream,
                  {.to = static_cast<float*>(op.to.data()),
                   .a = static_cast<const float*>(op.a.data()),
                   .maximum = static_cast<const float*>(data_of(op.maximum)),
                   .matrices = op.a.element_count() / rows / columns,
                   .rows = rows,
                   .columns = columns,
                   .block_rows = op.settings.rows > 0 ? std::min(op.settings.rows, rows) : rows,
                   .block_columns = op.settings.columns > 0 ? std::min(op.settings.columns, columns) : columns,
                   .format = op.settings.format,
                   .scale = op.settings.scale});
}

}  // namespace tandem::cuda
