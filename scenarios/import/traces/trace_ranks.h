// Recorded ranks represent those without traces.
#pragma once

#include <vector>

#include "scenarios/import/traces/trace.h"

namespace tandem {

// Returns the trace of a rank; else that of the nearest rank before it which has the same place in a replica of
// `period` ranks; else that of the nearest one before it; else the first trace.
const RankTrace& trace_of(const std::vector<RankTrace>& traces, int rank, int period = 1);

// Returns the group that `rank` has where the rank `recorded` has `ranks`: the same group if it is a member, else one
// with the same distances between ranks; empty if there is none.
std::vector<int> group_for(const std::vector<int>& ranks, int recorded, int rank, int world);

// Throws InputError where ranks with traces of their own do not call the same collectives of a group in the same order,
// or where a rank without one would have no group.
void check_groups(const std::vector<RankTrace>& traces, int period = 1);

}  // namespace tandem
