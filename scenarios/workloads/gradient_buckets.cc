#include "scenarios/workloads/gradient_buckets.h"

#include <algorithm>
#include <functional>

namespace tandem {

GradientBuckets::GradientBuckets(std::span<const Layer> layers, const std::vector<bool>& of_experts, std::int64_t tied,
                                 std::int64_t bucket_bytes, std::int64_t element_bytes, const MeshGroups& groups)
    : size_(tied), first_of_(layers.size()) {
  Bucket bucket{.count = tied, .last_layer = layers.size() - 1};  // the last layer's pass completes what is tied
  const auto close = [&](GroupCollectives* group) {
    bucket.group = group;
    if (bucket.count > 0) buckets_.push_back(bucket);
    bucket = {.first = size_};
  };
  const auto add = [&](bool experts, GroupCollectives* group) {
    for (std::size_t i = layers.size(); i-- > 0;) {
      if (of_experts[i] != experts) continue;
      first_of_[i] = size_;
      if (layers[i].parameters() > 0) bucket.last_layer = i;
      size_ += layers[i].parameters();
      bucket.count = size_ - bucket.first;
      if (bucket.count * element_bytes >= bucket_bytes) close(group);
    }
    close(group);
  };
  add(false, groups.data);
  add(true, groups.expert_data);
  std::ranges::stable_sort(buckets_, std::greater(), &Bucket::last_layer);
  for (Bucket& each : buckets_) {
    const std::int64_t parts = each.group->size();
    each.part_first = size_of_parts_;
    each.part_count = (each.count + parts - 1) / parts;
    size_of_parts_ += each.part_count;
    most_padding_ = std::max(most_padding_, each.part_count * parts - each.count);
  }
}

}  // namespace tandem
