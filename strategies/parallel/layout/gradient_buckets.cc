#include "strategies/parallel/layout/gradient_buckets.h"

#include <algorithm>
#include <functional>

#include "topologies/base/error.h"

namespace tandem {

namespace {

// Whether a bucket may end between a layer and the one before it.
bool may_end_before(std::span<const Layer> layers, std::size_t index, bool of_blocks) {
  return index == 0 || !of_blocks || !layers[index].block || layers[index].block != layers[index - 1].block;
}

}  // namespace

std::int64_t largest_bucket(std::span<const Layer> layers, std::int64_t bucket_bytes, std::int64_t element_bytes,
                            bool of_blocks) {
  std::int64_t most = 0, bucket = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (bucket * element_bytes >= bucket_bytes && may_end_before(layers, i, of_blocks)) bucket = 0;
    bucket += layers[i].parameters();
    most = std::max(most, bucket);
  }
  return most;
}

GradientBuckets::GradientBuckets(std::span<const Layer> layers, const std::vector<bool>& of_experts, const Tied& tied,
                                 const MeshGroups& groups, const Settings& settings)
    : size_(tied.is_copy ? tied.elements : 0), first_of_(layers.size()) {
  Bucket bucket{.count = size_, .last_layer = layers.size() - 1};  // the last layer's pass completes the copy
  const bool is_divided = settings.is_divided;
  std::int64_t quantised = 0;  // parameters of the bucket
  const auto close = [&](bool experts) {
    if (bucket.count > 0) {
      bucket.is_of_experts = experts;
      bucket.is_quantised = 2 * quantised > bucket.count;
      bucket.group = experts ? groups.expert_data : is_divided ? groups.shards : groups.data;
      bucket.copies = experts || !is_divided ? nullptr : groups.copies;
      GroupCollectives* const group = bucket.group;
      bucket.part_count = (bucket.count + group->size() - 1) / group->size();
      if (is_divided) size_ = bucket.first + bucket.padded_count();
      buckets_.push_back(bucket);
    }
    bucket = {.first = size_};
    quantised = 0;
  };
  const auto add = [&](bool experts) {
    for (std::size_t i = layers.size(); i-- > 0;) {
      if (of_experts[i] != experts) continue;
      std::int64_t left = layers[i].parameters();
      const bool has_table = is_divided && !tied.is_copy && tied.elements > 0 && i == 0;
      if (has_table) close(experts);
      first_of_[i] = size_;
      if (has_table) {
        TANDEM_CHECK(left >= tied.elements, "a table that is larger than its layer");
        bucket.count = tied.elements;
        size_ += tied.elements;
        left -= tied.elements;
        close(experts);
      }
      if (left > 0) bucket.last_layer = i;
      if (layers[i].can_be_quantised() && !layers[i].is_frozen) quantised += left;  // adapters are not
      size_ += left;
      bucket.count = size_ - bucket.first;
      const bool is_full = bucket.count * settings.element_bytes >= settings.bucket_bytes;
      if (is_full && may_end_before(layers, i, settings.of_blocks)) close(experts);
    }
    close(experts);
  };
  if (is_divided && tied.is_copy) close(false);
  add(false);
  add(true);
  std::ranges::stable_sort(buckets_, std::greater(), &Bucket::last_layer);
  for (Bucket& each : buckets_) {
    each.part_first = size_of_parts_;
    size_of_parts_ += each.part_count;
  }
}

}  // namespace tandem
