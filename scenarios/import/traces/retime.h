// Changes recorded ranks to what another job would have done: one with more or fewer replicas, with other buckets, or
// with parameters and gradients divided among the replicas. Kernels and the host keep their times; collectives are made
// anew.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <vector>

#include "scenarios/import/traces/trace.h"

namespace tandem {

struct Retiming {
  int replicas = 0;               // those that share a batch; 0: as recorded
  std::int64_t bucket_bytes = 0;  // of gradients that are reduced together; 0: as recorded
  bool is_divided = false;        // parameters are gathered before they are used, gradients reduced to their owners

  bool is_none() const { return replicas == 0 && bucket_bytes == 0 && !is_divided; }
};

// Returns the number of ranks in a replica, which follow each other: the distance between members of the group that
// reduces gradients. Returns 0 if no group of several ranks spans the job.
int replica_size(const RankTrace& trace);

// Returns the changed traces. Throws InputError where no all-reduce spans the job, or where a group or an exchange is
// neither within a replica nor across all replicas.
std::vector<RankTrace> retimed(const std::vector<RankTrace>& traces, const Retiming& wanted);

}  // namespace tandem
