// Topologies whose devices are slower, or faster, by one factor.
#pragma once

#include <string>

#include "engine/device.h"
#include "topologies/topology.h"

namespace tandem {

// The devices that compute: GPUs where the topology has any, else CPUs.
DeviceType fitted_type(const Topology& topology);

// Returns the topology whose devices of that type take `factor` times as long for all their work: rates and bandwidth
// are divided by it, overheads of ops multiplied. `source` becomes that of the figures.
Topology with_slower_devices(const Topology& topology, double factor, const std::string& source);

}  // namespace tandem
