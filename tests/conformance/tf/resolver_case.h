// Shared by the cases of resolvers: a cluster of 2 ps and 3 workers, and readers of a resolver's properties.
#pragma once

#include "strategies/cluster/cluster_resolver.h"
#include "tests/conformance/tf/outcome.h"

namespace tandem {

inline const JobTasks kPs = {"ps0:2222", "ps1:2222"};
inline const JobTasks kWorkers = {"worker0:2222", "worker1:2222", "worker2:2222"};

inline ClusterSpec two_jobs() {
  return {{"ps", kPs}, {"worker", kWorkers}};
}

inline Json cluster_of(const ClusterResolver& resolver) {
  return dict_of(resolver.cluster_spec());
}

inline Json master_of(const ClusterResolver& resolver) {
  return resolver.master();
}

}  // namespace tandem
