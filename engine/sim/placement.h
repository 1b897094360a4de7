// Places the logical devices of a job on the nodes of a topology.
#pragma once

#include <functional>

#include "engine/device.h"
#include "engine/engine.h"
#include "engine/sim/platform.h"

namespace tandem::sim {

struct PlacedDevice {
  DeviceId id;
  int worker = 0;
  NodeIndex node = 0;
};

// Calls `visit` with every device of the cluster, worker by worker: its compute devices, then its CPU:0 unless that is
// one of them. Throws Error if a worker's machine is not in the topology, and UnavailableError if the machine lacks
// such devices.
void place_devices(const EngineOptions& options, const std::function<void(const PlacedDevice&)>& visit);

}  // namespace tandem::sim
