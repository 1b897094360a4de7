#include "strategies/cluster/device_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "strategies/base/errors.h"
#include "strategies/cluster/device_spec.h"

namespace tandem {
namespace {

DeviceSpec default_device(const std::optional<JoinedTask>& joined) {
  return {.job = joined ? joined->job : "localhost",
          .replica = 0,
          .task = joined ? joined->task : 0,
          .type = "CPU",
          .index = 0};
}

}  // namespace

std::string canonicalize_device(std::string_view device, std::string_view defaults,
                                const std::optional<JoinedTask>& joined) {
  const DeviceSpec spec = DeviceSpec::parse(device);
  if (spec.type && std::any_of(spec.type->begin(), spec.type->end(), [](unsigned char c) { return std::islower(c); })) {
    throw AssertionError(fmt::format("device type '{}' of '{}' must be in capitals", *spec.type, device));
  }
  return default_device(joined).merged_with(DeviceSpec::parse(defaults)).merged_with(spec).text();
}

std::string resolve_device(std::string_view device, std::string_view current_scope,
                           const std::optional<JoinedTask>& joined) {
  return canonicalize_device(device, current_scope, joined);
}

std::string host_of_device(std::string_view device, const std::optional<JoinedTask>& joined) {
  const DeviceSpec spec = DeviceSpec::parse(canonicalize_device(device, "", joined));
  return spec.merged_with({.type = "CPU", .index = 0}).text();
}

std::string merge_device_scopes(const std::vector<std::string>& scopes) {
  DeviceSpec merged;
  for (const std::string& scope : scopes) merged = merged.merged_with(DeviceSpec::parse(scope));
  return merged.text();
}

std::vector<std::string> local_devices_from_num_gpus(int num_gpus) {
  if (num_gpus <= 0) return {"/device:CPU:0"};
  std::vector<std::string> devices;
  for (int i = 0; i < num_gpus; ++i) devices.push_back(fmt::format("/device:GPU:{}", i));
  return devices;
}

}  // namespace tandem
