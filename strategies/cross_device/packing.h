// Packing: small tensors are reduced together in a few large tensors, as in TensorFlow.
#pragma once

#include <optional>
#include <vector>

#include "engine/device.h"
#include "strategies/base/options.h"
#include "strategies/cross_device/reduction.h"

namespace tandem {

// Returns the indices of the groups in each pack, in order. A pack is closed once it is strictly larger than
// `bytes_per_pack`; there is one pack when that is 0 or when a size is unknown.
std::vector<std::vector<std::size_t>> packs_by_bytes(const std::vector<std::optional<std::int64_t>>& sizes_bytes,
                                                     std::int64_t bytes_per_pack);
// Returns how many elements each of `num_packs` pieces of a concatenation has: equal numbers, and the last takes the
// remainder. Throws ValueError unless num_packs is greater than 0.
std::vector<std::int64_t> pack_lengths(std::int64_t elements, int num_packs);

// Copies groups into packs on the communication streams, and back. Tensors of one element type share packs. A single
// group passes through without copies, as do all groups if packing is off.
class PackedGroups {
 public:
  PackedGroups(const std::vector<TensorGroup>& groups, const Packing& packing, const std::vector<Device*>& devices);
  const std::vector<TensorGroup>& groups() const { return packed_; }
  void pack() const;
  void unpack();  // once, after the packs' last use

 private:
  // The packed tensors of one device.
  struct Members {
    std::vector<Tensor> originals;
    std::vector<Tensor> places;  // their parts of the packs
  };
  void concatenate(const std::vector<TensorGroup>& groups, const std::vector<std::size_t>& members, int pieces);

  const std::vector<Device*>& devices_;
  std::vector<Members> members_;  // by device
  std::vector<TensorGroup> packed_;
};

}  // namespace tandem
