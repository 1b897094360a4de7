// Parts of a topology that are slower than their twins.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "topologies/topology.h"
#include "topologies/views/paths.h"

namespace tandem {

// Returns a sentence for each: a NIC that is slower than those of the other GPUs of its machine, a link that is slower
// or takes longer than others between nodes of these kinds and names, and figures in which a machine is behind the
// other ones. `matrix`: the paths of the first machine. What is said of the nodes in `known` is left out.
std::vector<std::string> odd_parts_of(const Topology& topology, const PathMatrix& matrix,
                                      const std::set<NodeIndex>& known);

}  // namespace tandem
