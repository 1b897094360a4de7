// Changes recorded ranks to what a job with more or fewer replicas would have done. Kernels, the host and the sizes of
// collectives stay as they are; groups that span the job grow or shrink.
//
// Threads: any.
#pragma once

#include <vector>

#include "scenarios/import/traces/trace.h"

namespace tandem {

// Returns the number of ranks in a replica, which follow each other: the distance between members of the group that
// reduces gradients. Returns 0 if no group of several ranks spans the job.
int replica_size(const RankTrace& trace);

// Returns the traces of a job with this number of replicas. Throws InputError where no collective spans the job, or
// where a group or an exchange is neither within a replica nor across all replicas.
std::vector<RankTrace> retimed(const std::vector<RankTrace>& traces, int replicas);

}  // namespace tandem
