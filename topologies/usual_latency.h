// The latency of links of which nothing is known. Readers fill gaps with it, and models that were fitted on usual links
// count only what a link's latency is above or below it.
#pragma once

#include <string_view>

#include "topologies/topology.h"

namespace tandem {

// Returns the latency of a link of this kind between two nodes of these kinds, as the catalog's machines have it.
// `transport`: of a network link.
double usual_latency_s(LinkKind kind, NodeKind from, NodeKind to, std::string_view transport = "infiniband");
double usual_latency_s(const Topology& topology, LinkIndex link);

}  // namespace tandem
