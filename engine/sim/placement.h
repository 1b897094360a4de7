// Which node of the topology each logical device of a job is on.
#pragma once

#include <vector>

#include "engine/device.h"
#include "engine/engine.h"
#include "engine/sim/platform.h"

namespace tandem::sim {

struct PlacedDevice {
  DeviceId id;
  int worker = 0;
  NodeIndex node = 0;
};

// Every device of the cluster: worker by worker its compute devices, then its CPU:0 where that is not one of them.
// Throws Error when a worker's machine is not in the topology or lacks the devices asked for.
std::vector<PlacedDevice> place_devices(const EngineOptions& options);

// The nodes those devices are on, in order, with the number of cores of each.
std::vector<HostSpec> hosts_of(const Topology& topology, const std::vector<PlacedDevice>& devices);

}  // namespace tandem::sim
