// Names the flags of `tandem collectives` that have no effect on what was timed.
#pragma once

#include <set>
#include <string>

#include "scenarios/collectives/collective_job.h"
#include "scenarios/run/unused_keys.h"

namespace tandem {

// The flags that the command line gave, by their long names.
using GivenFlags = std::set<std::string>;

// Adds those of `given` without effect on this run, the variables `nccl` of --nccl among them.
void find_unused_flags(const GivenFlags& given, const std::map<std::string, std::string>& nccl,
                       const CollectiveJob& job, const CollectiveSweep& sweep, const CollectiveResult& result,
                       UnusedKeys& unused);

}  // namespace tandem
