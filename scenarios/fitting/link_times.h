// Predicts the times of collectives from the links of a topology alone, without any measured time.
#pragma once

#include <functional>
#include <vector>

#include "engine/collective.h"
#include "topologies/topology.h"

namespace tandem {

// Returns a time in seconds for each size, 0 where none is known, or nothing at all.
using LinkTimes =
    std::function<std::vector<double>(CollectiveKind kind, int devices, int nodes, const std::vector<double>& bytes)>;

// Returns times from simulations of `topology`, or of a cluster of it where it is one machine and more nodes are asked
// for. There are no times for machines without GPUs, whose collectives do not go over links, and for more machines than
// there can be.
LinkTimes link_times_of(const Topology& topology);

}  // namespace tandem
