// Ranks whose traces are there stand for those whose are not.
#pragma once

#include <vector>

#include "scenarios/import/trace.h"

namespace tandem {

// The trace of that rank, or of the nearest one before it with its place in a replica of `period` ranks; else of the
// nearest one before it; the first one's before all of them.
const RankTrace& trace_of(const std::vector<RankTrace>& traces, int rank, int period = 1);

// The group that `rank` has where rank `recorded` has these ranks: the same one if it is a member, else one of the same
// distances between ranks. Empty: there is none.
std::vector<int> group_for(const std::vector<int>& ranks, int recorded, int rank, int world);

// Throws InputError where ranks with traces of their own do not call the same collectives of a group in the same order,
// or where a rank without one would have no group.
void check_groups(const std::vector<RankTrace>& traces, int period = 1);

}  // namespace tandem
