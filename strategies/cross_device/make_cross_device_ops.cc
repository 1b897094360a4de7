#include "strategies/cross_device/make_cross_device_ops.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "strategies/base/device_list.h"
#include "strategies/base/errors.h"
#include "strategies/cross_device/choose.h"
#include "strategies/cross_device/collective_all_reduce.h"
#include "strategies/cross_device/hierarchical_copy_all_reduce.h"
#include "strategies/cross_device/reduction_to_one_device.h"

namespace tandem {
namespace {

std::string unknown_ops(std::string_view name, const std::vector<std::string>& known) {
  std::string message = fmt::format("unknown cross-device operations '{}' (known: {})", name, fmt::join(known, ", "));
  if (const std::string near = nearest_name(name, known); !near.empty())
    message += fmt::format("; did you mean '{}'?", near);
  return message;
}

}  // namespace

std::vector<std::string> cross_device_ops_names() {
  return {"auto", "collective", "hierarchical_copy", "nccl", "reduction_to_one_device"};
}

std::unique_ptr<CrossDeviceOps> make_cross_device_ops(std::string_view name, Worker& worker,
                                                      std::vector<Device*> devices, const std::vector<DeviceId>& group,
                                                      Packing packing, const CommunicationOptions& options) {
  devices = checked_devices(std::move(devices), "cross-device operations");
  const bool spans_workers = group.size() > devices.size();
  if (name.empty() || name == "auto") {
    name = spans_workers ? "collective" : option_name_of(choose_for_mirrored(worker, devices).algorithm);
  }
  if (name == "collective") {
    return std::make_unique<CollectiveAllReduce>(worker, std::move(devices), group, packing, options);
  }
  const std::vector<std::string> known = cross_device_ops_names();
  if (std::find(known.begin(), known.end(), name) == known.end()) throw ValueError(unknown_ops(name, known));
  if (spans_workers) {
    throw ValueError(
        fmt::format("cross-device operations '{}' work within one worker; write collective or auto", name));
  }
  if (name == "hierarchical_copy") {
    return std::make_unique<HierarchicalCopyAllReduce>(worker, std::move(devices), packing);
  }
  if (name == "reduction_to_one_device") {
    return std::make_unique<ReductionToOneDevice>(worker, std::move(devices), packing);
  }
  return std::make_unique<NcclAllReduce>(worker, std::move(devices), packing);
}

}  // namespace tandem
