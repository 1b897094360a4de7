// Which gradients TensorFlow 1 packs together before an all-reduce. Pure functions, for any thread.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "topologies/base/dtype.h"

namespace tandem {

enum class TensorPacker : std::uint8_t { none, concat_and_split, small_tensor_aggregation };
// A number of packs comes before the aggregation of small tensors, which needs both of its limits.
TensorPacker choose_packer(int num_packs, std::int64_t max_bytes, int max_group);

struct IndexRuns {
  std::vector<std::pair<int, int>> ranges{};  // first and last of each run of two and more
  std::vector<int> singles{};
};
// Runs of consecutive numbers in an ascending list. A run grows while it spans at most `limit` steps, so that it may
// hold limit + 2 numbers.
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
// Small are f32 tensors of at most max_bytes; two and more small ones in a row are packed, where a row holds at most
// max_group + 2. ValueError unless both limits are above 0.
SmallTensorPacks pack_small_tensors(const std::vector<GradientSize>& gradients, std::int64_t max_bytes, int max_group);

}  // namespace tandem
