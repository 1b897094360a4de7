// The gradients of a stage, layer by layer from the last one to the first, and the buckets in which devices with the
// same parameters sum them. Layers of experts that are divided, or whole where other layers are divided, come after all
// others and have buckets of their own, because other devices have the same experts.
#pragma once

#include <span>
#include <vector>

#include "strategies/model/model.h"
#include "strategies/parallel/layout/mesh_layout.h"

namespace tandem {

// Returns the elements of the largest bucket of consecutive layers, each of which is closed once it has `bucket_bytes`.
// With `of_blocks`, the layers of a block (Layer::block) are never in two buckets.
std::int64_t largest_bucket(std::span<const Layer> layers, std::int64_t bucket_bytes, std::int64_t element_bytes,
                            bool of_blocks = false);

class GradientBuckets {
 public:
  struct Bucket {
    std::int64_t first = 0, count = 0;  // of the gradients
    std::size_t last_layer = 0;         // the layer whose gradients complete it, nearest to the input
    GroupCollectives* group = nullptr;
    GroupCollectives* copies = nullptr;  // devices that have the same part, where several groups divide it
    bool is_of_experts = false;
    bool is_quantised = false;  // whether the operands of most of its layers are (Layer::can_be_quantised())
    // A device's part of the bucket, if the group divides it, counted among the parts of all buckets. All parts of a
    // bucket are equally large, so that together they may be larger than the bucket.
    std::int64_t part_first = 0, part_count = 0;
    std::int64_t padded_count() const { return part_count * group->size(); }
  };

  // A table that the first and the last stage have a copy of each: so many elements, in the last stage before those of
  // the layers, in the first one as the first of its first layer.
  struct Tied {
    std::int64_t elements = 0;
    bool is_copy = false;  // whether these are the last stage's
  };
  struct Settings {
    std::int64_t bucket_bytes = 0, element_bytes = 4;
    bool is_divided = false;
    bool of_blocks = false;  // see largest_bucket()
  };
  // `of_experts` tells for each layer whether it is one of them. A bucket is closed once it has `bucket_bytes`.
  // With `is_divided`, the devices of a group divide each bucket: all its parts then precede the next bucket, and what
  // is tied is a bucket of its own in both stages, so that a device has the same part of both copies (as
  // Megatron-LM's param_and_grad_buffer.py divides them).
  GradientBuckets(std::span<const Layer> layers, const std::vector<bool>& of_experts, const Tied& tied,
                  const MeshGroups& groups, const Settings& settings);

  std::int64_t size() const { return size_; }
  std::int64_t size_of_parts() const { return size_of_parts_; }
  std::int64_t first_of(std::size_t layer) const { return first_of_[layer]; }
  // Returns the buckets in the order in which they are completed.
  std::span<const Bucket> buckets() const { return buckets_; }

 private:
  std::int64_t size_ = 0, size_of_parts_ = 0;
  std::vector<std::int64_t> first_of_;  // by layer
  std::vector<Bucket> buckets_;
};

}  // namespace tandem
