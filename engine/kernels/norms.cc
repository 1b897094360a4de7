#include <cmath>

#include "engine/kernels/layers.h"
#include "engine/kernels/rows.h"

namespace tandem {
namespace {

template <typename W>
struct RowStatistics {
  W mean, inverse;
};

template <typename W>
RowStatistics<W> statistics_of(const W* x, std::int64_t columns, bool is_centered, W epsilon) {
  const W inverse_columns = 1 / static_cast<W>(columns);
  const W mean = is_centered ? sum_over<W>(columns, [x](std::int64_t i) { return x[i]; }) * inverse_columns : 0;
  const W squares = sum_over<W>(columns, [x, mean](std::int64_t i) { return (x[i] - mean) * (x[i] - mean); });
  return {mean, 1 / std::sqrt(squares * inverse_columns + epsilon)};
}

// x becomes the normalised row, and `g` the gradient of it: to = inverse * (g - the mean of g - x * the mean of g * x).
template <typename T>
void gradient_of_row(T* to, Wide<T>* g, Wide<T>* x, const Wide<T>* scale, std::int64_t columns,
                     const RowStatistics<Wide<T>>& statistics, bool is_centered) {
  using W = Wide<T>;
  const auto [mean, inverse] = statistics;
  for (std::int64_t i = 0; i < columns; ++i) g[i] *= scale[i];
  for (std::int64_t i = 0; i < columns; ++i) x[i] = (x[i] - mean) * inverse;
  const W inverse_columns = 1 / static_cast<W>(columns);
  const W mean_product = sum_over<W>(columns, [g, x](std::int64_t i) { return g[i] * x[i]; }) * inverse_columns;
  const W mean_gradient =
      is_centered ? sum_over<W>(columns, [g](std::int64_t i) { return g[i]; }) * inverse_columns : 0;
  for (std::int64_t i = 0; i < columns; ++i) to[i] = T(inverse * (g[i] - mean_gradient - x[i] * mean_product));
}

}  // namespace

void execute_normalize(const kernel::Normalize& op) {
  const std::int64_t columns = last_axis(op.a);
  with_floating_type(op.to.dtype(), "normalize", [&]<typename T>() {
    using W = Wide<T>;
    const std::vector<W> scale = widened<T>(op.scale);
    std::vector<W> shift = widened<T>(op.shift), x = wide_row<T>(columns);
    const bool is_centered = static_cast<bool>(op.shift);
    shift.resize(scale.size());  // zeros where there is none
    auto* statistics = elements<RowStatistics<W>>(op.statistics);
    for_each_row(op.a, [&](std::int64_t row, std::int64_t first) {
      widen<T>(x.data(), elements<T>(op.a) + first, columns);
      statistics[row] = statistics_of(x.data(), columns, is_centered, converted<W>(op.epsilon));
      const auto [mean, inverse] = statistics[row];
      T* to = elements<T>(op.to) + first;
      for (std::size_t i = 0; i < x.size(); ++i) to[i] = T((x[i] - mean) * inverse * scale[i] + shift[i]);
    });
  });
}

void execute_normalize_gradient(const kernel::NormalizeGradient& op) {
  const std::int64_t columns = last_axis(op.a);
  with_floating_type(op.to.dtype(), "normalize_gradient", [&]<typename T>() {
    using W = Wide<T>;
    const std::vector<W> scale = widened<T>(op.scale);
    std::vector<W> x = wide_row<T>(columns), g = wide_row<T>(columns);
    const auto* statistics = elements<const RowStatistics<W>>(op.statistics);
    for_each_row(op.a, [&](std::int64_t row, std::int64_t first) {
      widen<T>(x.data(), elements<T>(op.a) + first, columns);
      widen<T>(g.data(), elements<T>(op.gradient) + first, columns);
      gradient_of_row<T>(elements<T>(op.to) + first, g.data(), x.data(), scale.data(), columns, statistics[row],
                         op.is_centered);
    });
  });
}

void execute_normalize_parameter_gradients(const kernel::NormalizeParameterGradients& op) {
  const std::int64_t columns = last_axis(op.a);
  with_floating_type(op.a.dtype(), "normalize_parameter_gradients", [&]<typename T>() {
    using W = Wide<T>;
    std::vector<W> of_scale = wide_row<T>(columns), of_shift = wide_row<T>(columns);
    if (op.accumulates) {
      of_scale = widened<T>(op.of_scale);
      if (op.of_shift) of_shift = widened<T>(op.of_shift);
    }
    const auto* statistics = elements<const RowStatistics<W>>(op.statistics);
    for_each_row(op.a, [&](std::int64_t row, std::int64_t first) {
      const auto [mean, inverse] = statistics[row];
      const T *a = elements<T>(op.a) + first, *gradient = elements<T>(op.gradient) + first;
      for (std::size_t i = 0; i < of_scale.size(); ++i) of_scale[i] += W{gradient[i]} * ((W{a[i]} - mean) * inverse);
      for (std::size_t i = 0; i < of_shift.size(); ++i) of_shift[i] += W{gradient[i]};
    });
    narrow(elements<T>(op.of_scale), of_scale.data(), columns);
    if (op.of_shift) narrow(elements<T>(op.of_shift), of_shift.data(), columns);
  });
}

}  // namespace tandem
