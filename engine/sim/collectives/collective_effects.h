// What a finished collective has done to memory, in runs that carry values. Reductions add in rank order.
#pragma once

#include "engine/sim/collectives/collective_group.h"

namespace tandem::sim {

void perform(const CollectiveCall& call);

}  // namespace tandem::sim
