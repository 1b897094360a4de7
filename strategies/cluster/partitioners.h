// tf.distribute.experimental.partitioners: into how many shards a variable is cut along each axis, and how a
// ParameterServerStrategy uses a partitioner's answer. Pure functions, for any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "engine/tensor.h"

namespace tandem {

using Partitions = std::vector<std::int64_t>;  // one number for each axis
// A partitioner that returns nothing is refused by the strategy.
using Partitioner = std::function<std::optional<Partitions>(const Shape& shape, DType dtype)>;

// Each of these cuts one axis and leaves the others whole. Constructors throw ValueError for a number below 1, calls
// for an axis that the shape does not have.
class FixedShardsPartitioner {
 public:
  explicit FixedShardsPartitioner(std::int64_t num_shards);
  Partitions operator()(const Shape& shape, DType dtype, int axis = 0) const;

 private:
  std::int64_t num_shards_;
};

// Cuts shards of about min_shard_bytes, rounding up the number of shards as TensorFlow does; at most max_shards and one
// per row.
class MinSizePartitioner {
 public:
  explicit MinSizePartitioner(std::int64_t min_shard_bytes = 256 << 10, std::int64_t max_shards = 1);
  Partitions operator()(const Shape& shape, DType dtype, int axis = 0) const;

 private:
  std::int64_t min_shard_bytes_, max_shards_;
};

// Cuts the fewest shards of at most max_shard_bytes, but with at least one row each; at most max_shards if given.
class MaxSizePartitioner {
 public:
  explicit MaxSizePartitioner(std::int64_t max_shard_bytes, std::optional<std::int64_t> max_shards = {});
  Partitions operator()(const Shape& shape, DType dtype, int axis = 0) const;

 private:
  std::int64_t max_shard_bytes_;
  std::optional<std::int64_t> max_shards_;
};

// Returns the number of shards along axis 0, at most the number of rows. ValueError for a missing or empty answer, a
// first number below 1, and a later one other than 1.
std::int64_t check_partitions(const std::optional<Partitions>& partitions, const Shape& shape);

// Returns the rows of each of `shards` contiguous shards. They differ by at most one, the larger ones come first.
std::vector<std::int64_t> shard_sizes(std::int64_t rows, std::int64_t shards);

// Returns the rows of a variable's shards; nothing for a variable that stays whole, because it is a scalar (for which
// the partitioner is not called) or has a single shard.
std::vector<std::int64_t> shard_sizes(const Partitioner& partitioner, const Shape& shape, DType dtype);

}  // namespace tandem
