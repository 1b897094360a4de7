#include "strategies/cross_device/destinations.h"

#include <fmt/format.h>

#include "strategies/base/device_list.h"
#include "strategies/base/errors.h"
#include "strategies/variables/variable.h"

namespace tandem {

Destinations::Destinations(std::vector<Device*> devices)
    : devices_(checked_devices(std::move(devices), "a destination")) {}

Destinations::Destinations(const Value& value) : devices_(tandem::devices_of(value)) {
  if (value.is(ValueKind::variable)) variable_ = value.variable();
  if (value.is(ValueKind::text)) names_ = {value.text()};
}

Destinations::Destinations(const std::shared_ptr<Variable>& variable)
    : devices_(variable->devices()), variable_(variable) {}

std::vector<Device*> Destinations::resolve(Worker& worker) const {
  std::vector<Device*> devices = devices_;
  const DeviceId here{.job = worker.job(), .task = worker.task(), .type = DeviceType::cpu, .index = 0};
  for (const std::string& name : names_) {
    const std::optional<DeviceId> id = DeviceId::parse(name, here);
    if (!id) throw ValueError(fmt::format("'{}' is no device: write for example /device:CPU:0", name));
    devices.push_back(&worker.device(*id));
  }
  if (devices.empty())
    throw ValueError("a reduction or broadcast needs a destination: a value, a variable or a device");
  return devices;
}

std::vector<Device*> devices_of(const Value& value) {
  switch (value.kind()) {
    case ValueKind::tensor:
      return {&value.tensor().device()};
    case ValueKind::sparse:
      return {&value.slices().values.device()};
    case ValueKind::variable:
      return value.variable()->devices();
    case ValueKind::per_replica:
    case ValueKind::mirrored: {
      std::vector<Device*> devices;
      for (const Value& part : value.parts()) {
        for (Device* device : devices_of(part)) devices.push_back(device);
      }
      return devices;
    }
    default:
      return {};
  }
}

}  // namespace tandem
