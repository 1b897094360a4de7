// How long a collective takes, and what it occupies.
//
// Measured where the topology holds samples of the operation on as many devices of one worker; else, on a single
// physical device, from its copy and memory rates; else from the schedule of an algorithm over the routes.
#pragma once

#include "engine/sim/collectives/collective_group.h"
#include "engine/sim/simulation.h"

namespace tandem::sim {

// Starts it now; `then` when it has ended on all devices. In the kernel. May throw.
void simulate(SimRun& run, const CollectiveGroup& group, const CollectiveCall& call, Simulation::Then then);

// Time of a measured collective at a size: log-log between samples, the smallest one's time below them, the largest
// one's bandwidth above. Nothing when it was not measured on that many devices.
struct SampledTime {
  double seconds = 0;
  bool is_extrapolated = false;
};
std::optional<SampledTime> sampled_time(std::span<const CollectiveSample> samples, std::string_view operation,
                                        int devices, double bytes);

}  // namespace tandem::sim
