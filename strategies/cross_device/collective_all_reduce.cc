#include "strategies/cross_device/collective_all_reduce.h"

#include <algorithm>

#include "strategies/cross_device/copies.h"
#include "strategies/cross_device/gather.h"

namespace tandem {
namespace {

std::vector<DeviceId> ids_of(const std::vector<Device*>& devices) {
  std::vector<DeviceId> ids;
  for (const Device* device : devices) ids.push_back(device->id());
  return ids;
}

}  // namespace

CollectiveAllReduce::CollectiveAllReduce(Worker& worker, std::vector<Device*> devices,
                                         const std::vector<DeviceId>& group, Packing packing)
    : CrossDeviceOps(worker, std::move(devices), packing), group_(group), communicator_(worker.communicator(group)) {}

void CollectiveAllReduce::sum_in_place(const std::vector<TensorGroup>& groups) {
  std::vector<Stream*> streams;
  for (std::size_t d = 0; d < devices().size(); ++d) streams.push_back(&stream(d));
  for (const TensorGroup& group : groups) communicator_.all_reduce(group, Reduction::sum, streams);
}

// Numbers of rows may differ from device to device.
std::vector<IndexedSlices> CollectiveAllReduce::concatenate_slices(const std::vector<IndexedSlices>& slices,
                                                                   const std::vector<Device*>& destinations) {
  if (group_.size() == devices().size()) return CrossDeviceOps::concatenate_slices(slices, destinations);
  std::vector<Tensor> rows, indices;
  for (std::size_t d = 0; d < slices.size(); ++d) {
    const IndexedSlices own = copy_on(*devices()[d], slices[d]);
    rows.push_back(own.values);
    indices.push_back(own.indices);
  }
  const std::vector<Tensor> all_rows = gather_over_group(worker(), devices(), group_, rows, 0);
  const std::vector<Tensor> all_indices = gather_over_group(worker(), devices(), group_, indices, 0);
  std::vector<IndexedSlices> whole;
  for (Device* device : destinations) {
    const auto place = std::find(devices().begin(), devices().end(), device);
    const std::size_t from = place == devices().end() ? 0 : static_cast<std::size_t>(place - devices().begin());
    whole.push_back(copy_on(*device, IndexedSlices{all_rows[from], all_indices[from], slices.front().dense_shape}));
  }
  return whole;
}

NcclAllReduce::NcclAllReduce(Worker& worker, const std::vector<Device*>& devices, Packing packing)
    : CollectiveAllReduce(worker, devices, ids_of(devices), packing) {}

}  // namespace tandem
