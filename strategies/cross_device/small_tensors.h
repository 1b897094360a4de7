// Packs gradients together before an all-reduce as TensorFlow 1 does. Pure functions. Threads: any.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "topologies/base/dtype.h"

namespace tandem {

enum class TensorPacker : std::uint8_t { none, concat_and_split, small_tensor_aggregation };
// Chooses by TensorFlow 1's order of precedence: a number of packs, then the aggregation of small tensors where both of
// its bounds are set.
TensorPacker choose_packer(int num_packs, std::int64_t max_bytes, int max_group);

struct IndexRuns {
  std::vector<std::pair<int, int>> ranges{};  // first and last of each run of two and more
  std::vector<int> singles{};
};
// Finds the runs of consecutive numbers in an ascending list. A run grows while it spans at most `limit` steps, so it
// may hold limit + 2 numbers.
IndexRuns extract_ranges(const std::vector<int>& indices, int limit = 32);

struct GradientSize {
  DType dtype = DType::f32;
  std::int64_t elements = 0;
};
struct SmallTensorPacks {
  std::vector<std::pair<int, int>> ranges{};  // each is one packed tensor; these come first
  std::vector<int> unpacked{};                // then these, by themselves
  std::vector<std::int64_t> output_elements{};
};
// Packs small tensors that follow each other, at least two and at most max_group + 2 of them. Small tensors are f32
// tensors of at most max_bytes. Throws ValueError unless both bounds are greater than 0.
SmallTensorPacks pack_small_tensors(const std::vector<GradientSize>& gradients, std::int64_t max_bytes, int max_group);

}  // namespace tandem
