// Machines of a cluster whose GPUs need no network among them, such as those of an NVL72 rack.
#pragma once

#include "topologies/topology.h"

namespace tandem {

// Returns how many machines share the first NVSwitch that belongs to none of them; 1 where there is no such switch.
// Neighbours are joined before machines that are further apart.
int joined_machines(const Topology& topology);

}  // namespace tandem
