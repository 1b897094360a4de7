// What the parts of the planner share.
#pragma once

#include <algorithm>
#include <cmath>

#include "engine/sim/collectives/nccl/plan.h"
#include "engine/sim/collectives/steps/lanes.h"
#include "engine/sim/collectives/steps/step_graph.h"

namespace tandem::sim::steps {

inline constexpr int kSlots = 8;  // chunks on their way over an edge: NCCL_STEPS, src/include/device.h
inline constexpr int kSlotsOfLargeChunks =
    2;  // of half the buffer each: ALLREDUCE_CHUNKSTEPS, src/include/collectives.h

// A graph has no more than this many transfers, if chunks can be joined, or those of several loops of a ring; and never
// more than the last.
inline constexpr double kGoodTransfers = 1 << 19;
inline constexpr double kGoodTransfersOfLoops = 1 << 16;
inline constexpr double kMostTransfers = 1 << 21;

// The share of the plan's time for steps that filling a pipeline may take, however long the steps' latencies are.
inline constexpr double kLeastFill = 0.25;

struct PlannedCall {
  const nccl::Communicator& communicator;
  const nccl::Call& call;
  int root = 0;
  const nccl::Plan& plan;
  nccl::Choice choice{};
  double steps_s = 0;  // of the plan's fixed time

  const nccl::Survey& facts() const { return communicator.facts(); }
  // Returns into how many chunks a pipeline of so many hops, some of them through NICs, divides its bytes: as few as
  // possible, unless filling it took more than what the steps' latencies leave of the plan's time. `each`: transfers of
  // one chunk.
  int chunks(const StepGraph& graph, int hops, int network_hops, double each) const {
    const double most = std::max(1.0, std::floor(kGoodTransfers / each));
    const double latency_s = (hops - network_hops) * graph.inside_s + network_hops * graph.network_s;
    const double fill_s = std::max(steps_s - latency_s, kLeastFill * steps_s);
    const double wanted = fill_s > 0 ? (hops - 1) * plan.transfer_s / fill_s : most;
    return static_cast<int>(std::clamp(std::ceil(wanted), 1.0, most));
  }
};

// Each returns false where the graph would have too many transfers.
bool add_ring(const PlannedCall& call, const Lanes& lanes, StepGraph& graph);   // all but the rooted ones
bool add_chain(const PlannedCall& call, const Lanes& lanes, StepGraph& graph);  // broadcast and reduce
bool add_trees(const PlannedCall& call, const Lanes& lanes, StepGraph& graph);
bool add_nvls(const PlannedCall& call, const Lanes& lanes, StepGraph& graph);  // with trees between domains
bool add_pairs(const PlannedCall& call, StepGraph& graph);                     // all_to_all

}  // namespace tandem::sim::steps
