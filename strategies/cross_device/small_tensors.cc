#include "strategies/cross_device/small_tensors.h"

#include <fmt/format.h>

#include <algorithm>

#include "strategies/base/errors.h"

namespace tandem {

TensorPacker choose_packer(int num_packs, std::int64_t max_bytes, int max_group) {
  if (num_packs > 0) return TensorPacker::concat_and_split;
  return max_bytes > 0 && max_group > 0 ? TensorPacker::small_tensor_aggregation : TensorPacker::none;
}

IndexRuns extract_ranges(const std::vector<int>& indices, int limit) {
  IndexRuns runs;
  for (std::size_t begin = 0; begin < indices.size();) {
    std::size_t last = begin;
    while (last + 1 < indices.size() && indices[last + 1] == indices[last] + 1 &&
           indices[last] - indices[begin] <= limit) {
      ++last;
    }
    if (last > begin) {
      runs.ranges.emplace_back(indices[begin], indices[last]);
    } else {
      runs.singles.push_back(indices[begin]);
    }
    begin = last + 1;
  }
  return runs;
}

SmallTensorPacks pack_small_tensors(const std::vector<GradientSize>& gradients, std::int64_t max_bytes, int max_group) {
  if (max_bytes <= 0 || max_group <= 0) {
    throw ValueError(
        fmt::format("max_bytes is {} and max_group {}, both must be greater than 0", max_bytes, max_group));
  }
  const auto elements_of = [&](int i) { return gradients[static_cast<std::size_t>(i)].elements; };
  std::vector<int> small;
  SmallTensorPacks packs;
  for (int i = 0; i < static_cast<int>(gradients.size()); ++i) {
    const bool is_small = gradients[static_cast<std::size_t>(i)].dtype == DType::f32 && 4 * elements_of(i) <= max_bytes;
    (is_small ? small : packs.unpacked).push_back(i);
  }
  const IndexRuns runs = extract_ranges(small, max_group);
  packs.ranges = runs.ranges;
  packs.unpacked.insert(packs.unpacked.end(), runs.singles.begin(), runs.singles.end());
  std::sort(packs.unpacked.begin(), packs.unpacked.end());
  for (const auto& [first, last] : packs.ranges) {
    std::int64_t elements = 0;
    for (int i = first; i <= last; ++i) elements += elements_of(i);
    packs.output_elements.push_back(elements);
  }
  for (const int i : packs.unpacked) packs.output_elements.push_back(elements_of(i));
  return packs;
}

}  // namespace tandem
