#include "strategies/base/device_list.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/worker.h"
#include "strategies/base/errors.h"

namespace tandem {

std::vector<Device*> checked_devices(std::vector<Device*> devices, std::string_view whose) {
  const auto null = std::ranges::find(devices, nullptr);
  if (null == devices.end()) return devices;
  throw ValueError(
      fmt::format("the device at place {} of the {} of {} is a null pointer; list devices of a worker, as "
                  "Worker::devices() has them",
                  null - devices.begin(), devices.size(), whose));
}

std::vector<Device*> all_devices_of(Worker& worker) {
  if (worker.devices().empty()) return {&worker.cpu()};
  return {worker.devices().begin(), worker.devices().end()};
}

}  // namespace tandem
