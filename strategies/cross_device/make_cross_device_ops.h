// Cross-device operations by name: what a scenario's `strategy.cross_device_ops` refers to.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "strategies/base/communication_options.h"
#include "strategies/cross_device/cross_device_ops.h"

namespace tandem {

std::vector<std::string> cross_device_ops_names();  // "auto" and the others, sorted

// Makes operations for `devices`, this worker's in replica order, of a `group` of devices of one worker or several.
// "auto" (or "") follows TensorFlow 2: see choose_for_mirrored; over several workers it is "collective". Throws
// ValueError for an unknown name, with a suggestion, and for one that works within one worker where there are several.
std::unique_ptr<CrossDeviceOps> make_cross_device_ops(std::string_view name, Worker& worker,
                                                      std::vector<Device*> devices, const std::vector<DeviceId>& group,
                                                      Packing packing, const CommunicationOptions& options = {});

}  // namespace tandem
