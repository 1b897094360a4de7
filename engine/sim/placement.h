// Places the logical devices of a job on the nodes of a topology.
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

// Every device of the cluster: worker by worker its compute devices, then its CPU:0 unless that is one of them.
// Throws Error when a worker's machine is not in the topology, and UnavailableError when it lacks such devices.
std::vector<PlacedDevice> place_devices(const EngineOptions& options);

// The nodes of these devices, in ascending order, with the number of cores of each.
std::vector<HostSpec> hosts_of(const Topology& topology, const std::vector<PlacedDevice>& devices);

}  // namespace tandem::sim
