// What the latencies of a topology's links add to the steps of a group's collectives.
#pragma once

#include <span>

#include "engine/sim/collectives/nccl/domain_map.h"
#include "engine/sim/collectives/nccl/survey.h"

namespace tandem::sim::nccl {

// Sets link_us and wire_us of a survey that is complete otherwise. `gpus`: the surveyed list.
void measure_latencies(const Topology& topology, const DomainMap& map, std::span<const NodeIndex> gpus, Survey& survey);

}  // namespace tandem::sim::nccl
