// Rows as numbers to compute with, and their sums in a fixed number of lanes: vectorisable, and in the same order every
// time.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "engine/kernels/element_types.h"

namespace tandem {

inline constexpr std::int64_t kRowLanes = 16;

// The sum of term(i) for i below `count`.
template <typename W, typename Term>
W sum_over(std::int64_t count, Term term) {
  std::array<W, kRowLanes> lanes{};
  std::int64_t i = 0;
  for (; i + kRowLanes <= count; i += kRowLanes) {
    for (std::int64_t lane = 0; lane < kRowLanes; ++lane) lanes[static_cast<std::size_t>(lane)] += term(i + lane);
  }
  W sum = 0;
  for (const W lane : lanes) sum += lane;
  for (; i < count; ++i) sum += term(i);
  return sum;
}

// The largest of the values; -infinity of none. NaN is passed over.
template <typename W>
W largest_of(const W* values, std::int64_t count) {
  std::array<W, kRowLanes> lanes;
  lanes.fill(-std::numeric_limits<W>::infinity());
  std::int64_t i = 0;
  for (; i + kRowLanes <= count; i += kRowLanes) {
    for (std::int64_t lane = 0; lane < kRowLanes; ++lane) {
      W& most = lanes[static_cast<std::size_t>(lane)];
      most = most < values[i + lane] ? values[i + lane] : most;
    }
  }
  for (; i < count; ++i) lanes[0] = lanes[0] < values[i] ? values[i] : lanes[0];
  return *std::max_element(lanes.begin(), lanes.end());
}

template <typename T>
void widen(Wide<T>* to, const T* from, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = from[i];
}

// Rounds halves.
template <typename T>
void narrow(T* to, const Wide<T>* from, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = T(from[i]);
}

// Memory for a row that is computed with.
template <typename T>
std::vector<Wide<T>> wide_row(std::int64_t columns) {
  return std::vector<Wide<T>>(static_cast<std::size_t>(columns));
}

template <typename T>
std::vector<Wide<T>> widened(const Tensor& tensor) {
  std::vector<Wide<T>> values = wide_row<T>(tensor ? tensor.element_count() : 0);
  if (tensor) widen(values.data(), static_cast<const T*>(elements<T>(tensor)), tensor.element_count());
  return values;
}

inline std::int64_t last_axis(const Tensor& tensor) {
  return tensor.shape()[tensor.shape().rank() - 1];
}

// Calls row(index, first element) for each row along the last axis.
template <typename Row>
void for_each_row(const Tensor& tensor, Row&& row) {
  const std::int64_t columns = last_axis(tensor), rows = columns == 0 ? 0 : tensor.element_count() / columns;
  for (std::int64_t index = 0; index < rows; ++index) row(index, index * columns);
}

}  // namespace tandem
