// How long a collective takes, and what it occupies meanwhile. The first of these that fits decides:
//
//   measured on as many devices and nodes, or such that     the measured time (engine/collective_fit.h)
//   the measured times say something about them
//   all devices on one physical device                      its copy and memory rates
//   GPUs of a known architecture, fluid                     NCCL (nccl/), with its fixed time and the flows of its
//   channels send and receive                                        a copy between the two devices otherwise the
//   schedule of an algorithm over the routes
#pragma once

#include "engine/sim/collectives/collective_call.h"
#include "engine/sim/simulation.h"

namespace tandem::sim {

// Starts the call now; calls `then` when it has ended on all devices. For the kernel. Throws RunError where a route or
// a rate is missing.
void simulate(SimRun& run, CollectiveCall& call, Simulation::Then then);

}  // namespace tandem::sim
