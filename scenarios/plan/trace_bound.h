// A time below which no replay of a trace goes, on any machines.
#pragma once

#include <vector>

#include "scenarios/import/traces/trace.h"

namespace tandem {

// Returns the seconds in which the slowest rank plays its part with collectives and exchanges that take no time, and
// with no time for kernels that have none recorded. Linear in the ops, without a simulation.
double least_trace_step_s(const std::vector<RankTrace>& ranks);

}  // namespace tandem
