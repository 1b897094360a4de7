// A time below which no step of a job goes, from what its devices do by themselves.
//
// A device works for as long as the passes of all micro-batches through its layers take. In a pipeline, passes wait for
// one another: the first device ends its step after the passes of all devices in their order, where transfers take no
// time, and after it has exchanged what replicas exchange, as fast as links allow. What devices wait for beside that
// only adds to it.
#pragma once

#include "scenarios/plan/lone_passes.h"
#include "scenarios/plan/replica_exchange.h"

namespace tandem {

// Returns seconds; 0 where nothing is known. `work` is that of the job, or of another one with equal passes.
double least_step_s(const Job& job, const LoneWork& work, const LinkRates& rates);

}  // namespace tandem
