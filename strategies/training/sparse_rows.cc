#include "strategies/training/sparse_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "engine/op.h"
#include "strategies/base/errors.h"
#include "strategies/cross_device/copies.h"
#include "strategies/cross_device/host_values.h"
#include "strategies/values/shapes.h"
#include "strategies/variables/components.h"

namespace tandem {
namespace {

Tensor indices_on(Worker& worker, Device& device, RowNumbers rows) {
  const Shape shape{static_cast<std::int64_t>(rows.size())};
  return copy_on(device, host_tensor(worker.cpu(), DType::i64, shape, [rows = std::move(rows)](std::int64_t i) {
                   return static_cast<double>(rows[static_cast<std::size_t>(i)]);
                 }));
}

}  // namespace

RowNumbers rows_of(Worker& worker, const IndexedSlices& slices, const Variable& variable) {
  const std::int64_t count = slices.indices.element_count();
  const std::int64_t rows = variable.shape().rank() == 0 ? 0 : variable.shape()[0];
  RowNumbers numbers;
  for (const double index : host_values(worker, slices.indices)) {
    if (index < 0 || index >= static_cast<double>(rows)) {
      throw InvalidArgumentError(fmt::format("a gradient of variable '{}' has row {}; the variable's shape is {}",
                                             variable.name(), index, variable.shape().text()));
    }
    numbers.push_back(static_cast<std::int64_t>(index));
  }
  if (numbers.empty() && rows > 0) {
    for (std::int64_t i = 0; i < count; ++i) numbers.push_back(i % rows);
  }
  return numbers;
}

RowNumbers distinct(const RowNumbers& rows) {
  RowNumbers sorted = rows;
  std::ranges::sort(sorted);
  const auto repeated = std::unique(sorted.begin(), sorted.end());
  if (repeated == sorted.end()) return rows;
  sorted.erase(repeated, sorted.end());
  return sorted;
}

IndexedSlices with_distinct_rows(Worker& worker, const IndexedSlices& slices, const RowNumbers& rows,
                                 const RowNumbers& distinct_rows) {
  if (rows.size() == distinct_rows.size()) return slices;
  std::map<std::int64_t, std::int64_t> place_of;
  for (const std::int64_t row : distinct_rows) place_of.emplace(row, static_cast<std::int64_t>(place_of.size()));
  RowNumbers places;
  for (const std::int64_t row : rows) places.push_back(place_of.at(row));
  Device& device = slices.values.device();
  const auto count = static_cast<std::int64_t>(distinct_rows.size());
  const Tensor sums = device.allocate(slices.values.dtype(), with_dimension(slices.values.shape(), 0, count));
  Stream& stream = device.compute_stream();
  stream.launch(as_update(op::fill(sums, 0)));
  stream.launch(as_update(
      op::scatter_rows(kernel::Scatter::add, sums, slices.values, indices_on(worker, device, std::move(places)))));
  return {sums, indices_on(worker, device, distinct_rows), slices.dense_shape};
}

// Rows that follow each other are copied together.
Tensor gathered(const Tensor& tensor, const RowNumbers& rows) {
  const auto count = static_cast<std::int64_t>(rows.size());
  Tensor result = tensor.device().allocate(tensor.dtype(), with_dimension(tensor.shape(), 0, count));
  std::vector<Tensor> to, from;
  for (std::size_t first = 0; first < rows.size();) {
    std::size_t end = first + 1;
    while (end < rows.size() && rows[end] == rows[end - 1] + 1) ++end;
    const auto length = static_cast<std::int64_t>(end - first);
    to.push_back(result.slice(static_cast<std::int64_t>(first), length));
    from.push_back(tensor.slice(rows[first], length));
    first = end;
  }
  if (!to.empty()) tensor.device().compute_stream().launch(as_update(op::copy_many(std::move(to), std::move(from))));
  return result;
}

IndexedSlices rows_between(Worker& worker, const IndexedSlices& slices, std::int64_t first, const Shape& shard) {
  const std::vector<double> rows = host_values(worker, slices.indices);
  if (rows.empty() && slices.indices.element_count() > 0) {
    throw RuntimeError("the slices of a sharded variable's gradient need values to know their shards");
  }
  RowNumbers places, local;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::int64_t row = static_cast<std::int64_t>(rows[i]) - first;
    if (row < 0 || row >= shard[0]) continue;
    places.push_back(static_cast<std::int64_t>(i));
    local.push_back(row);
  }
  Device& device = slices.values.device();
  return {gathered(slices.values, places), indices_on(worker, device, std::move(local)), shard};
}

}  // namespace tandem
