#include "strategies/cross_device/packing.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "strategies/base/errors.h"

namespace tandem {
namespace {

// Copies in one launch per device: many small copies would cost as much as the small reductions that packing saves.
void copy(Device& device, std::vector<Tensor> to, std::vector<Tensor> from) {
  if (to.empty()) return;
  Op copy = op::copy_many(std::move(to), std::move(from));
  copy.category = Category::communication;
  device.stream(kCommunicationStream).launch(std::move(copy));
}

}  // namespace

std::vector<std::vector<std::size_t>> packs_by_bytes(const std::vector<std::optional<std::int64_t>>& sizes_bytes,
                                                     std::int64_t bytes_per_pack) {
  std::vector<std::vector<std::size_t>> packs;
  std::int64_t size = 0;
  const bool all_known = std::all_of(sizes_bytes.begin(), sizes_bytes.end(), [](const auto& bytes) { return !!bytes; });
  const bool is_one_pack = bytes_per_pack == 0 || !all_known;
  for (std::size_t i = 0; i < sizes_bytes.size(); ++i) {
    if (packs.empty() || (!is_one_pack && size > bytes_per_pack)) {
      packs.emplace_back();
      size = 0;
    }
    packs.back().push_back(i);
    size += sizes_bytes[i].value_or(0);
  }
  return packs;
}

std::vector<std::int64_t> pack_lengths(std::int64_t elements, int num_packs) {
  if (num_packs <= 0) throw ValueError(fmt::format("num_packs is {}, must be greater than 0", num_packs));
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(num_packs), elements / num_packs);
  lengths.back() += elements % num_packs;
  return lengths;
}

PackedGroups::PackedGroups(const std::vector<TensorGroup>& groups, const Packing& packing,
                           const std::vector<Device*>& devices)
    : devices_(devices), members_(devices.size()) {
  if (groups.size() < 2 || (packing.num_packs == 0 && packing.bytes_per_pack == 0)) {
    packed_ = groups;
    return;
  }
  for (Members& members : members_) {
    members.originals.reserve(groups.size());
    members.places.reserve(groups.size());
  }
  std::map<DType, std::vector<std::size_t>> by_dtype;
  for (std::size_t i = 0; i < groups.size(); ++i) by_dtype[groups[i].front().dtype()].push_back(i);
  for (const auto& [dtype, members] : by_dtype) {
    if (packing.bytes_per_pack == 0) {
      concatenate(groups, members, packing.num_packs);
      continue;
    }
    std::vector<std::optional<std::int64_t>> sizes;
    for (const std::size_t i : members) sizes.push_back(static_cast<std::int64_t>(groups[i].front().size_bytes()));
    for (const auto& pack : packs_by_bytes(sizes, packing.bytes_per_pack)) {
      std::vector<std::size_t> chosen;
      for (const std::size_t i : pack) chosen.push_back(members[i]);
      concatenate(groups, chosen, 1);
    }
  }
}

void PackedGroups::concatenate(const std::vector<TensorGroup>& groups, const std::vector<std::size_t>& members,
                               int pieces) {
  if (members.size() == 1 && pieces == 1) {
    packed_.push_back(groups[members.front()]);
    return;
  }
  std::int64_t elements = 0;
  for (const std::size_t i : members) elements += groups[i].front().element_count();
  TensorGroup whole;
  for (Device* device : devices_) {
    whole.push_back(device->allocate(groups[members.front()].front().dtype(), Shape{elements}));
  }
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    std::int64_t offset = 0;
    for (const std::size_t i : members) {
      const Tensor& original = groups[i][d];
      members_[d].places.push_back(whole[d].flat_slice(offset, original.element_count()));
      members_[d].originals.push_back(original);
      offset += original.element_count();
    }
  }
  std::int64_t offset = 0;
  for (const std::int64_t length : pack_lengths(elements, pieces)) {
    if (length == 0) continue;
    TensorGroup piece;
    for (const Tensor& tensor : whole) piece.push_back(tensor.flat_slice(offset, length));
    packed_.push_back(std::move(piece));
    offset += length;
  }
}

void PackedGroups::pack() const {
  for (std::size_t d = 0; d < devices_.size(); ++d) copy(*devices_[d], members_[d].places, members_[d].originals);
}

void PackedGroups::unpack() {
  for (std::size_t d = 0; d < devices_.size(); ++d) {
    copy(*devices_[d], std::move(members_[d].originals), std::move(members_[d].places));
  }
}

}  // namespace tandem
