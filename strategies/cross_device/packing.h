// Small tensors reduced together in a few large packs, as TensorFlow does it.
#pragma once

#include <optional>
#include <vector>

#include "strategies/cross_device/cross_device_ops.h"

namespace tandem {

// Which groups share a pack, by index and in order. A pack is closed once it is strictly larger than `bytes_per_pack`;
// everything is one pack when that is 0, or when a size is unknown.
std::vector<std::vector<std::size_t>> packs_by_bytes(const std::vector<std::optional<std::int64_t>>& sizes_bytes,
                                                     std::int64_t bytes_per_pack);
// Elements of each of `num_packs` pieces of a concatenation: equal, the last takes the remainder. ValueError unless
// num_packs is above 0.
std::vector<std::int64_t> pack_lengths(std::int64_t elements, int num_packs);

// Groups copied into packs on the communication streams, and back. Tensors of one element type share packs; a single
// group, or packing that is off, is passed through without copies.
class PackedGroups {
 public:
  PackedGroups(const std::vector<TensorGroup>& groups, const Packing& packing, const std::vector<Device*>& devices);
  const std::vector<TensorGroup>& groups() const { return packed_; }
  void pack() const;
  void unpack();  // once, at the end

 private:
  // Of one device.
  struct Members {
    std::vector<Tensor> originals;
    std::vector<Tensor> places;  // where they stand in a pack
  };
  void concatenate(const std::vector<TensorGroup>& groups, const std::vector<std::size_t>& members, int pieces);

  const std::vector<Device*>& devices_;
  std::vector<Members> members_;  // of each device
  std::vector<TensorGroup> packed_;
};

}  // namespace tandem
