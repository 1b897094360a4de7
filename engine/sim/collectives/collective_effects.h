// Applies a collective to the memory of its devices, in runs that carry values. Reductions add in rank order.
#pragma once

#include "engine/sim/collectives/collective_call.h"

namespace tandem::sim {

void apply_effects(const CollectiveCall& call);

}  // namespace tandem::sim
