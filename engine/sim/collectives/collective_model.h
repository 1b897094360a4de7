// How long a collective takes, and what it occupies meanwhile. The first of these that fits decides:
//
//   send and receive                                        a copy between the two devices
//   devices of one worker, whose topology holds samples     the measured time
//   of that collective on as many devices
//   all devices on one physical device                      its copy and memory rates
//   otherwise                                               the schedule of an algorithm over the routes
#pragma once

#include "engine/sim/collectives/collective_call.h"
#include "engine/sim/simulation.h"

namespace tandem::sim {

// Starts the call now; calls `then` when it has ended on all devices. For the kernel. Throws RunError where a route or
// a rate is missing.
void simulate(SimRun& run, const CollectiveCall& call, Simulation::Then then);

// The time of a measured collective at a size: interpolated between samples in the logarithms of size and time, the
// time of the smallest one below them, the bandwidth of the largest one above. Nothing if it was not measured on that
// many devices.
struct SampledTime {
  double seconds = 0;
  bool is_extrapolated = false;
};
std::optional<SampledTime> sampled_time(std::span<const CollectiveSample> samples, std::string_view operation,
                                        int devices, double bytes);

}  // namespace tandem::sim
