#include "strategies/nccl_all_reduce.h"

namespace tandem {
namespace {

std::vector<DeviceId> ids_of(const std::vector<Device*>& devices) {
  std::vector<DeviceId> ids;
  for (const Device* device : devices) ids.push_back(device->id());
  return ids;
}

}  // namespace

NcclAllReduce::NcclAllReduce(Worker& worker, std::vector<Device*> devices, Packing packing)
    : CrossDeviceOps(worker, devices, packing), communicator_(worker.communicator(ids_of(devices))) {}

void NcclAllReduce::sum_in_place(const std::vector<TensorGroup>& groups) {
  std::vector<Stream*> streams;
  for (std::size_t d = 0; d < devices().size(); ++d) streams.push_back(&stream(d));
  for (const TensorGroup& group : groups) communicator_.all_reduce(group, Reduction::sum, streams);
}

}  // namespace tandem
