#include <algorithm>
#include <numeric>

#include "engine/kernels/layers.h"
#include "engine/kernels/rows.h"

namespace tandem {
namespace {

// Whether element `one` of a row is larger than `other`, or equal and before it. NaN is larger than any number.
template <typename W>
bool is_larger(const W* x, std::int64_t one, std::int64_t other) {
  const bool is_one_nan = x[one] != x[one], is_other_nan = x[other] != x[other];
  if (is_one_nan || is_other_nan) return is_one_nan && (!is_other_nan || one < other);
  return x[one] > x[other] || (x[one] == x[other] && one < other);
}

// to = factor * a, or a.
template <typename T>
void take_row(T* to, const T* a, std::int64_t columns, Wide<T> factor, bool is_scaled) {
  if (!is_scaled) {
    std::copy_n(a, columns, to);
    return;
  }
  for (std::int64_t i = 0; i < columns; ++i) to[i] = T(factor * a[i]);
}

template <typename W, typename T>
void add_row(W* sums, const T* a, std::int64_t columns, W factor, bool is_scaled) {
  if (is_scaled) {
    for (std::int64_t i = 0; i < columns; ++i) sums[i] += factor * a[i];
  } else {
    for (std::int64_t i = 0; i < columns; ++i) sums[i] += a[i];
  }
}

// Calls visit(row, expert, the number of the row among those of all experts, weight).
template <typename T, typename Visit>
void for_each_weight(const Tensor& weights, Visit&& visit) {
  const std::int64_t rows = weights.shape()[0], experts = weights.shape()[1];
  const T* values = elements<const T>(weights);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t expert = 0; expert < experts; ++expert) {
      visit(row, expert, expert * rows + row, Wide<T>{values[row * experts + expert]});
    }
  }
}

}  // namespace

void execute_largest_of_rows(const kernel::LargestOfRows& op) {
  const std::int64_t columns = last_axis(op.a);
  with_floating_type(op.to.dtype(), "largest_of_rows", [&]<typename T>() {
    std::vector<Wide<T>> x = wide_row<T>(columns);
    std::vector<std::int64_t> places(static_cast<std::size_t>(columns));
    for_each_row(op.a, [&](std::int64_t /*row*/, std::int64_t first) {
      widen<T>(x.data(), elements<T>(op.a) + first, columns);
      std::iota(places.begin(), places.end(), std::int64_t{0});
      const auto end = places.begin() + op.count;
      if (end != places.end()) {
        std::nth_element(places.begin(), end, places.end(),
                         [&](std::int64_t one, std::int64_t other) { return is_larger(x.data(), one, other); });
      }
      T* to = elements<T>(op.to) + first;
      std::fill_n(to, columns, T{});
      std::for_each(places.begin(), end, [&](std::int64_t at) { to[at] = T(x[static_cast<std::size_t>(at)]); });
    });
  });
}

void execute_dispatch_rows(const kernel::DispatchRows& op) {
  const std::int64_t columns = op.a.shape()[1];
  with_floating_type(op.to.dtype(), "dispatch_rows", [&]<typename T>() {
    for_each_weight<T>(op.weights, [&](std::int64_t row, std::int64_t, std::int64_t at, Wide<T> weight) {
      T* to = elements<T>(op.to) + at * columns;
      if (weight == 0) {
        std::fill_n(to, columns, T{});
      } else {
        take_row<T>(to, elements<T>(op.a) + row * columns, columns, weight, op.is_scaled);
      }
    });
  });
}

void execute_combine_rows(const kernel::CombineRows& op) {
  const std::int64_t columns = op.to.shape()[1], experts = op.weights.shape()[1];
  with_floating_type(op.to.dtype(), "combine_rows", [&]<typename T>() {
    std::vector<Wide<T>> sums = wide_row<T>(columns);
    if (experts == 0) std::fill_n(elements<T>(op.to), op.to.element_count(), T{});
    for_each_weight<T>(op.weights, [&](std::int64_t row, std::int64_t expert, std::int64_t at, Wide<T> weight) {
      if (expert == 0) std::fill(sums.begin(), sums.end(), Wide<T>{});
      if (weight != 0) add_row(sums.data(), elements<T>(op.a) + at * columns, columns, weight, op.is_scaled);
      if (expert == experts - 1) narrow(elements<T>(op.to) + row * columns, sums.data(), columns);
    });
  });
}

void execute_expert_weight_gradients(const kernel::ExpertWeightGradients& op) {
  const std::int64_t columns = op.gradient.shape()[1], experts = op.weights.shape()[1];
  with_floating_type(op.to.dtype(), "expert_weight_gradients", [&]<typename T>() {
    using W = Wide<T>;
    for_each_weight<T>(op.weights, [&](std::int64_t row, std::int64_t expert, std::int64_t at, W weight) {
      const T *a = elements<T>(op.a) + at * columns, *gradient = elements<T>(op.gradient) + row * columns;
      elements<T>(op.to)[row * experts + expert] =
          weight == 0 ? T{} : T(sum_over<W>(columns, [=](std::int64_t i) { return W{a[i]} * W{gradient[i]}; }));
    });
  });
}

}  // namespace tandem
