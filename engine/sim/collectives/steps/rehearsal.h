// How long the steps of a collective take on free links, without a simulation.
#pragma once

#include "engine/sim/collectives/steps/step_graph.h"

namespace tandem::sim::steps {

// Returns the time from the first transfer to the last arrival, if all GPUs come together.
double rehearse(const StepGraph& graph);

// Divides the time that the plan of a call has beside its copies over the steps, so that the graph takes `seconds`
// without its lead as it is now: multiplies inside_s and network_s, and adds what steps cannot take to the lead. A
// graph that takes longer by its copies alone keeps them, and its steps cost nothing more.
void fit_steps(StepGraph& graph, double seconds);

}  // namespace tandem::sim::steps
