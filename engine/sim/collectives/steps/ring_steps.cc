// Rings, and the chains that rooted collectives make of them.
#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/sim/collectives/nccl/constants.h"
#include "engine/sim/collectives/steps/planned_call.h"

namespace tandem::sim::steps {
namespace {

// What a channel keeps in its buffer on a GPU for one step of a ring: src/include/collectives.h.
constexpr double kRingChunk = 2 * nccl::kMiB;

// Returns how often the ring goes round: Simple divides its bytes into chunks that fit into the buffers.
double loops_of(const PlannedCall& call, double transfers) {
  if (call.choice.protocol != nccl::Protocol::simple) return 1;
  const double part = call.call.bytes / call.facts().machine.total_gpus;
  const double loops = std::ceil(part / (call.communicator.graphs().thread_blocks * kRingChunk));
  return std::clamp(loops, 1.0, std::max(1.0, std::floor(kGoodTransfersOfLoops / transfers)));
}

}  // namespace

// A GPU sends what has arrived in the step before. In a new loop it goes on when the last chunk of the loop before has
// arrived, because a thread block does one after the other.
bool add_ring(const PlannedCall& call, const Lanes& lanes, StepGraph& graph) {
  const int gpus = call.facts().machine.total_gpus;
  const int rounds = call.call.kind == CollectiveKind::all_reduce ? 2 : 1;
  const double once = double{1} * rounds * (gpus - 1);
  const double loops = loops_of(call, once * gpus * lanes.count());
  if (once * gpus * lanes.count() > kMostTransfers) return false;
  const int steps = static_cast<int>(once * loops);
  const int slots = call.choice.protocol == nccl::Protocol::simple ? kSlotsOfLargeChunks : kSlots;
  Transfer transfer{.bytes = call.call.bytes / gpus / lanes.count() / loops};
  for (int lane = 0; lane < lanes.count(); ++lane) {
    transfer.copy_s = call.plan.transfer_s / steps * lanes.copy_share(lane);
    const Ring ring = lanes.ring(lane);
    const int first_edge = static_cast<int>(graph.edges().size());
    for (const Edge& edge : ring.edges) graph.add_edge(edge);
    const int first = static_cast<int>(graph.transfers().size());
    const auto at = [&](int step, int gpu) { return first + step * gpus + (gpu + gpus) % gpus; };
    for (int step = 0; step < steps; ++step) {
      for (int gpu = 0; gpu < gpus; ++gpu) {
        transfer.edge = first_edge + gpu;
        const int added = graph.add(transfer);
        if (step > 0) graph.after_arrived(added, at(step - 1, gpu - 1));
        if (step >= slots) graph.after_sent(added, at(step - slots + 1, gpu + 1));
      }
    }
  }
  return true;
}

bool add_chain(const PlannedCall& call, const Lanes& lanes, StepGraph& graph) {
  const int gpus = call.facts().machine.total_gpus;
  const int hops = gpus - 1;
  const double each = double{1} * hops * lanes.count();
  if (each > kMostTransfers) return false;
  const int chunks = call.chunks(graph, hops, lanes.domains() > 1 ? lanes.domains() : 0, each);
  Transfer transfer{.bytes = call.call.bytes / lanes.count() / chunks, .copy_s = call.plan.transfer_s / chunks};
  for (int lane = 0; lane < lanes.count(); ++lane) {
    const Ring ring = lanes.ring(lane);
    const auto root = static_cast<int>(std::ranges::find(ring.gpus, call.root) - ring.gpus.begin());
    const int begin = call.call.kind == CollectiveKind::broadcast ? root : (root + 1) % gpus;
    const int first_edge = static_cast<int>(graph.edges().size());
    for (int hop = 0; hop < hops; ++hop) {
      graph.add_edge(ring.edges[static_cast<std::size_t>((begin + hop) % gpus)]);
    }
    const int first = static_cast<int>(graph.transfers().size());
    for (int chunk = 0; chunk < chunks; ++chunk) {
      for (int hop = 0; hop < hops; ++hop) {
        transfer.edge = first_edge + hop;
        const int added = graph.add(transfer);
        if (hop > 0) graph.after_arrived(added, added - 1);
        if (chunk >= kSlots && hop + 1 < hops) graph.after_sent(added, first + (chunk - kSlots) * hops + hop + 1);
      }
    }
  }
  return true;
}

}  // namespace tandem::sim::steps
