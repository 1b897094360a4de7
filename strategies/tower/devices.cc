#include "strategies/tower/devices.h"

#include <fmt/format.h>

#include <algorithm>

#include "strategies/cross_device/destinations.h"
#include "strategies/cross_device/gather.h"
#include "strategies/types/multi_worker_mirrored.h"

namespace tandem::tower {

Device& device_named(Worker& worker, const std::string& name) {
  return *Destinations(name).resolve(worker).front();
}

std::vector<Device*> devices_by_number(Worker& worker, int num_gpus) {
  std::vector<Device*> devices;
  devices.reserve(static_cast<std::size_t>(std::max(0, num_gpus)));
  for (int i = 0; i < num_gpus; ++i) devices.push_back(&device_named(worker, fmt::format("/device:GPU:{}", i)));
  return num_gpus == 0 ? std::vector<Device*>{&worker.cpu()} : devices;
}

std::vector<DeviceId> first_devices_in_sync(Worker& worker, int count) {
  std::vector<DeviceId> all = devices_in_sync(worker);
  if (count == 0) return hosts_of(all);
  std::erase_if(all, [count](const DeviceId& id) { return id.index >= count; });
  return all;
}

}  // namespace tandem::tower
