#include <algorithm>

#include "engine/kernels/exponential.h"
#include "engine/kernels/layers.h"
#include "engine/kernels/rows.h"
#include "topologies/base/portable_math.h"

namespace tandem {
namespace {

// The column that a label names in this part of the logits; `columns` where another part has it.
std::int64_t column_of(std::int32_t label, std::int64_t first, std::int64_t columns) {
  const std::int64_t column = label - first;
  return column < 0 || column >= columns ? columns : column;
}

template <typename T>
void divided_gradients(const kernel::DividedCrossEntropy& op) {
  using W = Wide<T>;
  const std::int64_t columns = op.logits.shape()[1];
  const T *maxima = elements<const T>(op.maxima), *sums = elements<const T>(op.sums);
  const auto* labels = elements<const std::int32_t>(op.labels);
  std::vector<W> x = wide_row<T>(columns);
  for_each_row(op.logits, [&](std::int64_t row, std::int64_t first) {
    const W largest = maxima[row], factor = static_cast<W>(op.gradient_scale / static_cast<double>(W{sums[row]}));
    widen<T>(x.data(), elements<T>(op.logits) + first, columns);
    for (W& value : x) value = exponential(value - largest) * factor;
    const std::int64_t column = column_of(labels[row], op.first, columns);
    if (column < columns) x[static_cast<std::size_t>(column)] -= static_cast<W>(op.gradient_scale);
    narrow(elements<T>(op.gradient) + first, x.data(), columns);
  });
}

}  // namespace

void execute_row_maxima(const kernel::RowMaxima& op) {
  const std::int64_t rows = op.logits.shape()[0], columns = op.logits.shape()[1];
  with_floating_type(op.logits.dtype(), "row_maxima", [&]<typename T>() {
    std::vector<Wide<T>> x = wide_row<T>(columns);
    for (std::int64_t row = 0; row < rows; ++row) {
      widen<T>(x.data(), elements<T>(op.logits) + row * columns, columns);
      elements<T>(op.maxima)[row] = T(largest_of(x.data(), columns));
    }
  });
}

void execute_exponential_sums(const kernel::ExponentialSums& op) {
  const std::int64_t rows = op.logits.shape()[0], columns = op.logits.shape()[1];
  const auto* labels = elements<const std::int32_t>(op.labels);
  with_floating_type(op.logits.dtype(), "exponential_sums", [&]<typename T>() {
    using W = Wide<T>;
    for (std::int64_t row = 0; row < rows; ++row) {
      const T* logits = elements<const T>(op.logits) + row * columns;
      const W largest = elements<T>(op.maxima)[row];
      elements<T>(op.sums)[row] =
          T(sum_over<W>(columns, [=](std::int64_t i) { return exponential(W{logits[i]} - largest); }));
      const std::int64_t column = column_of(labels[row], op.first, columns);
      elements<T>(op.targets)[row] = column < columns ? T(W{logits[column]} - largest) : T{};
    }
  });
}

void execute_divided_cross_entropy(const kernel::DividedCrossEntropy& op) {
  with_floating_type(op.logits.dtype(), "divided_cross_entropy", [&]<typename T>() {
    using W = Wide<T>;
    if (op.loss) {
      double loss = 0;
      for (std::int64_t row = 0; row < op.sums.element_count(); ++row) {
        loss += portable::log(W{elements<T>(op.sums)[row]}) - W{elements<T>(op.targets)[row]};
      }
      *elements<T>(op.loss) = T(static_cast<W>(op.loss_scale * loss));
    }
    if (op.gradient) divided_gradients<T>(op);
  });
}

}  // namespace tandem
