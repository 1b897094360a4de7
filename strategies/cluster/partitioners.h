// Into how many shards a variable is cut along each axis: TensorFlow's tf.distribute.experimental.partitioners, and
// what ParameterServerStrategy makes of a partitioner's answer. Pure functions, for any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "engine/tensor.h"

namespace tandem {

using Partitions = std::vector<std::int64_t>;  // one number an axis
// Nothing is a wrong answer, which the strategy refuses.
using Partitioner = std::function<std::optional<Partitions>(const Shape& shape, DType dtype)>;

// Each cuts one axis and leaves the others whole. Constructors throw ValueError for a number below 1, calls for an axis
// that the shape does not have.
class FixedShardsPartitioner {
 public:
  explicit FixedShardsPartitioner(std::int64_t num_shards);
  Partitions operator()(const Shape& shape, DType dtype, int axis = 0) const;

 private:
  std::int64_t num_shards_;
};

// Shards of about min_shard_bytes, rounded to more shards as TensorFlow does, so that the size that is asked for is
// kept up to the last shard; at most max_shards and one a row.
class MinSizePartitioner {
 public:
  explicit MinSizePartitioner(std::int64_t min_shard_bytes = 256 << 10, std::int64_t max_shards = 1);
  Partitions operator()(const Shape& shape, DType dtype, int axis = 0) const;

 private:
  std::int64_t min_shard_bytes_, max_shards_;
};

// The fewest shards of at most max_shard_bytes, but one row each at least; no more than max_shards where given.
class MaxSizePartitioner {
 public:
  explicit MaxSizePartitioner(std::int64_t max_shard_bytes, std::optional<std::int64_t> max_shards = {});
  Partitions operator()(const Shape& shape, DType dtype, int axis = 0) const;

 private:
  std::int64_t max_shard_bytes_;
  std::optional<std::int64_t> max_shards_;
};

// The number of shards along axis 0, cut to the rows there are. ValueError for no answer, an empty one, a first number
// below 1, and a later one other than 1.
std::int64_t check_partitions(const std::optional<Partitions>& partitions, const Shape& shape);

// Rows of each of `shards` contiguous shards: they differ by at most one, the larger ones come first.
std::vector<std::int64_t> shard_sizes(std::int64_t rows, std::int64_t shards);

// The rows of a variable's shards; empty where it stays whole, as a scalar (the partitioner is not asked) or one shard.
std::vector<std::int64_t> shard_sizes(const Partitioner& partitioner, const Shape& shape, DType dtype);

}  // namespace tandem
