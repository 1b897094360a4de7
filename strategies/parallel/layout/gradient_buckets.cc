#include "strategies/parallel/layout/gradient_buckets.h"

#include <algorithm>
#include <functional>

#include "topologies/base/error.h"

namespace tandem {

std::int64_t largest_bucket(std::span<const Layer> layers, std::int64_t bucket_bytes, std::int64_t element_bytes) {
  std::int64_t most = 0, bucket = 0;
  for (const Layer& layer : layers) {
    if (bucket * element_bytes >= bucket_bytes) bucket = 0;
    bucket += layer.parameters();
    most = std::max(most, bucket);
  }
  return most;
}

GradientBuckets::GradientBuckets(std::span<const Layer> layers, const std::vector<bool>& of_experts, const Tied& tied,
                                 std::int64_t bucket_bytes, std::int64_t element_bytes, const MeshGroups& groups,
                                 bool is_divided)
    : size_(tied.is_copy ? tied.elements : 0), first_of_(layers.size()) {
  Bucket bucket{.count = size_, .last_layer = layers.size() - 1};  // the last layer's pass completes the copy
  const auto close = [&](GroupCollectives* group) {
    if (bucket.count > 0) {
      bucket.group = group;
      bucket.part_count = (bucket.count + group->size() - 1) / group->size();
      if (is_divided) size_ = bucket.first + bucket.padded_count();
      buckets_.push_back(bucket);
    }
    bucket = {.first = size_};
  };
  const auto add = [&](bool experts, GroupCollectives* group) {
    for (std::size_t i = layers.size(); i-- > 0;) {
      if (of_experts[i] != experts) continue;
      std::int64_t left = layers[i].parameters();
      const bool has_table = is_divided && !tied.is_copy && tied.elements > 0 && i == 0;
      if (has_table) close(group);
      first_of_[i] = size_;
      if (has_table) {
        TANDEM_CHECK(left >= tied.elements, "a table that is larger than its layer");
        bucket.count = tied.elements;
        size_ += tied.elements;
        left -= tied.elements;
        close(group);
      }
      if (left > 0) bucket.last_layer = i;
      size_ += left;
      bucket.count = size_ - bucket.first;
      if (bucket.count * element_bytes >= bucket_bytes) close(group);
    }
    close(group);
  };
  if (is_divided && tied.is_copy) close(groups.data);
  add(false, groups.data);
  add(true, groups.expert_data);
  std::ranges::stable_sort(buckets_, std::greater(), &Bucket::last_layer);
  for (Bucket& each : buckets_) {
    each.part_first = size_of_parts_;
    size_of_parts_ += each.part_count;
  }
}

}  // namespace tandem
