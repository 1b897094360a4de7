#include "strategies/cluster/partitioners.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "strategies/base/errors.h"

namespace tandem {
namespace {

std::int64_t at_least_one(const char* name, std::int64_t value) {
  if (value < 1) throw ValueError(fmt::format("{} is {}, must be at least 1", name, value));
  return value;
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

std::int64_t checked_size(const Shape& shape, int axis) {
  if (axis < 0 || axis >= shape.rank()) {
    throw ValueError(fmt::format("cannot partition along axis {} of shape {}", axis, shape.text()));
  }
  return shape[axis];
}

Partitions along(const Shape& shape, int axis, std::int64_t shards) {
  Partitions partitions(static_cast<std::size_t>(shape.rank()), 1);
  partitions[static_cast<std::size_t>(axis)] = shards;
  return partitions;
}

std::int64_t size_bytes(const Shape& shape, DType dtype) {
  return shape.element_count() * static_cast<std::int64_t>(size_of(dtype));
}

}  // namespace

FixedShardsPartitioner::FixedShardsPartitioner(std::int64_t num_shards)
    : num_shards_(at_least_one("num_shards", num_shards)) {}

Partitions FixedShardsPartitioner::operator()(const Shape& shape, DType, int axis) const {
  return along(shape, axis, std::min(num_shards_, checked_size(shape, axis)));
}

MinSizePartitioner::MinSizePartitioner(std::int64_t min_shard_bytes, std::int64_t max_shards)
    : min_shard_bytes_(at_least_one("min_shard_bytes", min_shard_bytes)),
      max_shards_(at_least_one("max_shards", max_shards)) {}

Partitions MinSizePartitioner::operator()(const Shape& shape, DType dtype, int axis) const {
  const std::int64_t rows = checked_size(shape, axis);
  const std::int64_t wanted = ceil_div(size_bytes(shape, dtype), min_shard_bytes_);
  return along(shape, axis, std::max<std::int64_t>(1, std::min({rows, max_shards_, wanted})));
}

MaxSizePartitioner::MaxSizePartitioner(std::int64_t max_shard_bytes, std::optional<std::int64_t> max_shards)
    : max_shard_bytes_(at_least_one("max_shard_bytes", max_shard_bytes)), max_shards_(max_shards) {
  if (max_shards) at_least_one("max_shards", *max_shards);
}

Partitions MaxSizePartitioner::operator()(const Shape& shape, DType dtype, int axis) const {
  const std::int64_t rows = checked_size(shape, axis);
  const std::int64_t row_bytes = std::max<std::int64_t>(1, rows == 0 ? 0 : size_bytes(shape, dtype) / rows);
  const std::int64_t rows_per_shard = std::max<std::int64_t>(1, max_shard_bytes_ / row_bytes);
  const std::int64_t shards = ceil_div(rows, rows_per_shard);
  return along(shape, axis, max_shards_ ? std::min(*max_shards_, shards) : shards);
}

std::int64_t check_partitions(const std::optional<Partitions>& partitions, const Shape& shape) {
  const bool is_right = partitions && !partitions->empty() && partitions->front() >= 1 &&
                        std::all_of(partitions->begin() + 1, partitions->end(), [](std::int64_t n) { return n == 1; });
  if (!is_right) {
    throw ValueError(fmt::format("variable_partitioner must return a number of shards followed by ones, not {}",
                                 partitions ? fmt::format("[{}]", fmt::join(*partitions, ", ")) : "nothing"));
  }
  return std::min(partitions->front(), checked_size(shape, 0));
}

std::vector<std::int64_t> shard_sizes(std::int64_t rows, std::int64_t shards) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(shards), rows / shards);
  for (std::int64_t i = 0; i < rows % shards; ++i) ++sizes[static_cast<std::size_t>(i)];
  return sizes;
}

std::vector<std::int64_t> shard_sizes(const Partitioner& partitioner, const Shape& shape, DType dtype) {
  if (shape.rank() == 0) return {};
  const std::int64_t shards = check_partitions(partitioner(shape, dtype), shape);
  return shards <= 1 ? std::vector<std::int64_t>{} : shard_sizes(shape[0], shards);
}

}  // namespace tandem
