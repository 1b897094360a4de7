// Models how long a collective takes and what it occupies meanwhile. The first row that fits decides:
//
//   GPUs of a known architecture               NCCL (nccl/): a fixed time and the flows of its channels or, with
//                                              `message`, their steps (steps/); where measured times say something
//                                              about the call, multiplied so that it takes them
//   measured on as many devices and nodes,     the measured time (engine/collective_fit.h)
//   or on others that say something about them
//   send and receive                           a copy between the two devices
//   all devices on one physical device         its copy and memory rates
//   otherwise                                  the schedule of an algorithm over the routes
#pragma once

#include "engine/sim/collectives/collective_call.h"
#include "engine/sim/simulation.h"

namespace tandem::sim {

// Starts the call now; calls `then` when it has ended on all devices. Called in the kernel. Throws RunError where a
// route or a rate is missing.
void simulate(SimRun& run, CollectiveCall& call, Simulation::Then then);

}  // namespace tandem::sim
