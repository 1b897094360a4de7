#include "engine/kernels/elementwise.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "engine/kernels/element_types.h"

namespace tandem {
namespace {

template <typename T, typename Function>
void map_unary(T* to, const T* a, std::int64_t count, Function function) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = function(a[i]);
}

template <typename T, typename Function>
void map_binary(T* to, const T* a, const T* b, std::int64_t count, Function function) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = function(a[i], b[i]);
}

template <typename T>
T quotient(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) throw RunError("an integer is divided by zero");
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return wrapped_subtract(T{0}, a);
    }
  }
  return a / b;
}

template <typename T>
void apply(kernel::Binary operation, T* to, const T* a, const T* b, std::int64_t count) {
  using kernel::Binary;
  switch (operation) {
    case Binary::add:
      return map_binary(to, a, b, count, [](T x, T y) { return wrapped_add(x, y); });
    case Binary::subtract:
      return map_binary(to, a, b, count, [](T x, T y) { return wrapped_subtract(x, y); });
    case Binary::multiply:
      return map_binary(to, a, b, count, [](T x, T y) { return wrapped_multiply(x, y); });
    case Binary::divide:
      return map_binary(to, a, b, count, [](T x, T y) { return quotient(x, y); });
    case Binary::maximum:
      return map_binary(to, a, b, count, [](T x, T y) { return x < y ? y : x; });
    case Binary::minimum:
      return map_binary(to, a, b, count, [](T x, T y) { return y < x ? y : x; });
  }
}

// Sums of contiguous elements in a fixed number of lanes: vectorisable, and in the same order every time. The sum of
// halves is rounded once.
template <typename T>
T sum_of(const T* a, std::int64_t count) {
  constexpr std::int64_t kLanes = 16;
  std::array<Wide<T>, kLanes> lanes{};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) {
      lanes[static_cast<std::size_t>(lane)] = wrapped_add<Wide<T>>(lanes[static_cast<std::size_t>(lane)], a[i + lane]);
    }
  }
  Wide<T> sum{};
  for (const Wide<T> lane : lanes) sum = wrapped_add(sum, lane);
  for (; i < count; ++i) sum = wrapped_add<Wide<T>>(sum, a[i]);
  return sum;
}

template <typename T>
void add_rows(Wide<T>* sums, const T* rows, std::int64_t length, std::int64_t inner) {
  std::fill(sums, sums + inner, Wide<T>{});
  for (std::int64_t row = 0; row < length; ++row) {
    const T* elements = rows + row * inner;
    for (std::int64_t i = 0; i < inner; ++i) sums[i] = wrapped_add<Wide<T>>(sums[i], elements[i]);
  }
}

// a is [outer, length, inner]; to is [outer, inner].
template <typename T>
void sum_middle(T* to, const T* a, std::int64_t outer, std::int64_t length, std::int64_t inner) {
  std::vector<Wide<T>> wide(is_half<T> ? static_cast<std::size_t>(inner) : 0);
  for (std::int64_t block = 0; block < outer; ++block) {
    T* sums = to + block * inner;
    const T* rows = a + block * length * inner;
    if (inner == 1) {
      sums[0] = sum_of(rows, length);
    } else if constexpr (is_half<T>) {
      add_rows(wide.data(), rows, length, inner);
      std::copy(wide.begin(), wide.end(), sums);
    } else {
      add_rows(sums, rows, length, inner);
    }
  }
}

}  // namespace

void execute_fill(const kernel::Fill& fill) {
  with_type(fill.to.dtype(), "fill", [&]<typename T>() {
    std::fill_n(elements<T>(fill.to), fill.to.element_count(), converted<T>(fill.value));
  });
}

void execute_elementwise(const kernel::Elementwise& op) {
  with_type(op.to.dtype(), "an elementwise operation", [&]<typename T>() {
    apply<T>(op.operation, elements<T>(op.to), elements<T>(op.a), elements<T>(op.b), op.to.element_count());
  });
}

void execute_scale_add(const kernel::ScaleAdd& op) {
  with_type(op.to.dtype(), "scale_add", [&]<typename T>() {
    using Number = Wide<T>;
    const auto alpha = converted<Number>(op.alpha);
    const auto beta = converted<Number>(op.beta);
    T* to = elements<T>(op.to);
    const T* a = elements<T>(op.a);
    const std::int64_t count = op.to.element_count();
    if (beta == Number{0}) {  // the old contents may be anything, NaN included
      map_unary(to, a, count, [alpha](Number x) { return wrapped_multiply(alpha, x); });
    } else if (beta == Number{1}) {
      map_binary(to, static_cast<const T*>(to), a, count,
                 [alpha](Number old, Number x) { return wrapped_add(old, wrapped_multiply(alpha, x)); });
    } else {
      map_binary(to, static_cast<const T*>(to), a, count, [alpha, beta](Number old, Number x) {
        return wrapped_add(wrapped_multiply(beta, old), wrapped_multiply(alpha, x));
      });
    }
  });
}

void execute_square_root(const kernel::SquareRoot& op) {
  with_floating_type(op.to.dtype(), "square_root", [&]<typename T>() {
    using Number = Wide<T>;
    const auto inside = converted<Number>(op.inside), outside = converted<Number>(op.outside);
    map_unary(elements<T>(op.to), static_cast<const T*>(elements<T>(op.a)), op.to.element_count(),
              [inside, outside](Number x) { return std::sqrt(x + inside) + outside; });
  });
}

void execute_relu(const kernel::Relu& op) {
  with_type(op.to.dtype(), "relu", [&]<typename T>() {
    map_unary(elements<T>(op.to), static_cast<const T*>(elements<T>(op.a)), op.to.element_count(),
              [](T x) { return x < T{0} ? T{0} : x; });
  });
}

void execute_relu_gradient(const kernel::ReluGradient& op) {
  with_type(op.to.dtype(), "relu_gradient", [&]<typename T>() {
    map_binary(elements<T>(op.to), static_cast<const T*>(elements<T>(op.gradient)),
               static_cast<const T*>(elements<T>(op.output)), op.to.element_count(),
               [](T gradient, T output) { return output > T{0} ? gradient : T{0}; });
  });
}

void execute_add_bias(const kernel::AddBias& op) {
  with_type(op.to.dtype(), "add_bias", [&]<typename T>() {
    const std::int64_t columns = op.bias.element_count();
    const std::int64_t rows = columns == 0 ? 0 : op.to.element_count() / columns;
    const T* bias = elements<T>(op.bias);
    for (std::int64_t row = 0; row < rows; ++row) {
      T* to = elements<T>(op.to) + row * columns;
      map_binary(to, static_cast<const T*>(to), bias, columns, [](T x, T y) { return wrapped_add(x, y); });
    }
  });
}

void execute_sum_axis(const kernel::SumAxis& op) {
  const Shape& shape = op.a.shape();
  std::int64_t outer = 1;
  std::int64_t inner = 1;
  for (int axis = 0; axis < op.axis; ++axis) outer *= shape[axis];
  for (int axis = op.axis + 1; axis < shape.rank(); ++axis) inner *= shape[axis];
  with_type(op.to.dtype(), "sum_axis", [&]<typename T>() {
    sum_middle(elements<T>(op.to), static_cast<const T*>(elements<T>(op.a)), outer, shape[op.axis], inner);
  });
}

void execute_scatter_rows(const kernel::ScatterRows& op) {
  const auto* indices = elements<const std::int64_t>(op.indices);
  const std::int64_t rows = op.to.shape()[0];
  const std::int64_t width = rows == 0 ? 0 : op.to.element_count() / rows;
  with_type(op.to.dtype(), "scatter_rows", [&]<typename T>() {
    for (std::int64_t i = 0; i < op.indices.element_count(); ++i) {
      if (indices[i] < 0 || indices[i] >= rows) {
        throw InvalidArgumentError("scatter_rows to row " + std::to_string(indices[i]) + " of " + op.to.shape().text());
      }
      T* to = elements<T>(op.to) + indices[i] * width;
      const T* from = elements<T>(op.rows) + i * width;
      if (op.operation == kernel::Scatter::replace) {
        std::copy_n(from, width, to);
      } else {
        // The two enumerations have the same order after `replace`.
        apply<T>(static_cast<kernel::Binary>(static_cast<int>(op.operation) - 1), to, to, from, width);
      }
    }
  });
}

void execute_copy_blocks(const kernel::CopyBlocks& op) {
  const std::size_t size = size_of(op.to.dtype());
  const auto bytes = [size](std::int64_t count) { return static_cast<std::size_t>(count) * size; };
  if (op.elements == 0) return;
  for (std::int64_t block = 0; block < op.count; ++block) {
    std::memmove(static_cast<std::byte*>(op.to.data()) + bytes(op.to_first + block * op.to_stride),
                 static_cast<const std::byte*>(op.from.data()) + bytes(op.from_first + block * op.from_stride),
                 bytes(op.elements));
  }
}

void execute_copy_many(const kernel::CopyMany& op) {
  for (std::size_t i = 0; i < op.to.size(); ++i) {
    if (op.to[i].size_bytes() > 0) std::memmove(op.to[i].data(), op.from[i].data(), op.to[i].size_bytes());
  }
}

void execute_cast(const kernel::Cast& op) {
  with_type(op.a.dtype(), "cast", [&]<typename From>() {
    with_type(op.to.dtype(), "cast", [&]<typename To>() {
      const From* a = elements<From>(op.a);
      To* to = elements<To>(op.to);
      for (std::int64_t i = 0; i < op.to.element_count(); ++i) to[i] = converted<To>(a[i]);
    });
  });
}

}  // namespace tandem
