#include <algorithm>

#include "engine/kernels/exponential.h"
#include "engine/kernels/layers.h"
#include "engine/kernels/rows.h"

namespace tandem {
namespace {

// `x` has room for the row. NaN gets into the sum, and so into every element that is seen; so does the difference of
// two infinities.
template <typename T>
void softmax_of_row(T* to, const T* a, std::int64_t columns, std::int64_t seen, Wide<T> scale, Wide<T>* x) {
  using W = Wide<T>;
  for (std::int64_t i = 0; i < seen; ++i) x[i] = scale * W{a[i]};
  const W largest = largest_of(x, seen);
  for (std::int64_t i = 0; i < seen; ++i) x[i] = exponential(x[i] - largest);
  const W inverse = 1 / sum_over<W>(seen, [x](std::int64_t i) { return x[i]; });
  for (std::int64_t i = 0; i < seen; ++i) to[i] = T(x[i] * inverse);
  std::fill(to + seen, to + columns, T{});
}

template <typename T>
void softmax_gradient_of_row(T* to, const T* gradient, const T* output, std::int64_t columns, Wide<T> scale, Wide<T>* g,
                             Wide<T>* out) {
  using W = Wide<T>;
  widen(g, gradient, columns);
  widen(out, output, columns);
  const W sum = sum_over<W>(columns, [g, out](std::int64_t i) { return g[i] * out[i]; });
  for (std::int64_t i = 0; i < columns; ++i) to[i] = T(scale * out[i] * (g[i] - sum));
}

}  // namespace

void execute_softmax(const kernel::Softmax& op) {
  const kernel::SoftmaxSettings& settings = op.settings;
  const std::int64_t columns = last_axis(op.a);
  with_floating_type(op.to.dtype(), "softmax", [&]<typename T>() {
    std::vector<Wide<T>> x = wide_row<T>(columns);
    for_each_row(op.a, [&](std::int64_t row, std::int64_t first) {
      const std::int64_t seen = settings.queries == 0 ? columns : settings.first_query + row % settings.queries + 1;
      softmax_of_row<T>(elements<T>(op.to) + first, elements<T>(op.a) + first, columns, std::min(seen, columns),
                        converted<Wide<T>>(settings.scale), x.data());
    });
  });
}

void execute_softmax_gradient(const kernel::SoftmaxGradient& op) {
  const std::int64_t columns = last_axis(op.output);
  with_floating_type(op.to.dtype(), "softmax_gradient", [&]<typename T>() {
    std::vector<Wide<T>> g = wide_row<T>(columns), out = wide_row<T>(columns);
    for_each_row(op.output, [&](std::int64_t /*row*/, std::int64_t first) {
      softmax_gradient_of_row<T>(elements<T>(op.to) + first, elements<T>(op.gradient) + first,
                                 elements<T>(op.output) + first, columns, converted<Wide<T>>(op.scale), g.data(),
                                 out.data());
    });
  });
}

}  // namespace tandem
