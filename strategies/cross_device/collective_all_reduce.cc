#include "strategies/cross_device/collective_all_reduce.h"

#include <fmt/format.h>

#include <algorithm>

#include "strategies/base/device_list.h"
#include "strategies/base/errors.h"
#include "strategies/cross_device/copies.h"
#include "strategies/cross_device/gather.h"

namespace tandem {
namespace {

std::vector<DeviceId> ids_of(const std::vector<Device*>& devices) {
  std::vector<DeviceId> ids;
  for (const Device* device : checked_devices(devices, "cross-device operations")) ids.push_back(device->id());
  return ids;
}

// A collective is called for this worker's devices only: the programs of other workers call it for theirs.
std::vector<Device*> checked_own(const Worker& worker, const std::vector<Device*>& given) {
  std::vector<Device*> devices = checked_devices(given, "cross-device operations");
  for (const Device* device : devices) {
    if (device->worker() == worker.index()) continue;
    throw ValueError(
        fmt::format("a collective all-reduce of {} {} over {}, which belongs to another worker: only "
                    "reduction_to_one_device and hierarchical_copy work on devices of several workers that one "
                    "program drives",
                    worker.job(), worker.task(), device->id().text()));
  }
  return devices;
}

const std::vector<DeviceId>& checked_group(const std::vector<DeviceId>& group, const std::vector<DeviceId>& own) {
  if (own.empty() || group.size() % own.size() != 0) {
    throw ValueError(
        fmt::format("a group of {} devices cannot be divided among workers of {}: group_size must be "
                    "divisible by the number of devices",
                    group.size(), own.size()));
  }
  if (std::search(group.begin(), group.end(), own.begin(), own.end()) == group.end()) {
    throw ValueError(
        fmt::format("a group of {} devices lacks this worker's, which begin with {}, or has them in "
                    "another order",
                    group.size(), own.front().text()));
  }
  return group;
}

Packing packing_with(const Packing& packing, const CommunicationOptions& options) {
  check_communication_options(options);
  return options.bytes_per_pack > 0 ? Packing{.num_packs = 1, .bytes_per_pack = options.bytes_per_pack} : packing;
}

}  // namespace

CollectiveAllReduce::CollectiveAllReduce(Worker& worker, const std::vector<Device*>& devices,
                                         const std::vector<DeviceId>& group, Packing packing,
                                         const CommunicationOptions& options)
    : CrossDeviceOps(worker, checked_own(worker, devices), packing_with(packing, options)),
      group_(checked_group(group, ids_of(this->devices()))),
      communicator_(worker.communicator(group_)),
      timeout_s_(options.timeout_seconds) {
  if (timeout_s_) communicator_.set_timeout(timeout_s_);
}

void CollectiveAllReduce::set_timeout(std::optional<double> timeout_s) {
  communicator_.set_timeout(timeout_s ? timeout_s : timeout_s_);
}

void CollectiveAllReduce::sum_in_place(const std::vector<TensorGroup>& groups) {
  std::vector<Stream*> streams;
  for (std::size_t d = 0; d < devices().size(); ++d) streams.push_back(&stream(d));
  for (const TensorGroup& group : groups) communicator_.all_reduce(group, Reduction::sum, streams);
}

// Devices may have different numbers of rows.
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
