#include "engine/sim/collectives/collective_algorithm.h"

#include <algorithm>
#include <cmath>

namespace tandem::sim {
namespace {

// Chains cut messages into chunks of NCCL's default buffer slice, but into no more chunks than this.
constexpr double kChunkBytes = 512 * 1024;
constexpr int kMostChunks = 64;

Schedule plan_ring(const CollectiveShape& shape) {
  const int n = shape.devices;
  const int rounds = shape.kind == CollectiveKind::all_reduce ? 2 : 1;
  const double share = shape.bytes / n;
  Schedule schedule;
  schedule.steps = rounds * (n - 1);
  schedule.latency_steps = schedule.steps;
  schedule.transfers_of_step = [n, share](int, std::vector<Transfer>& transfers) {
    for (int i = 0; i < n; ++i) transfers.push_back({i, (i + 1) % n, share});
  };
  for (int i = 0; i < n; ++i) schedule.flows.push_back({i, (i + 1) % n, schedule.steps * share});
  return schedule;
}

// A chain along the ring: from the root (broadcast), or from the rank after the root around to it (reduce).
Schedule plan_chain(const CollectiveShape& shape) {
  const int n = shape.devices;
  const int first = shape.kind == CollectiveKind::broadcast ? shape.root : (shape.root + 1) % n;
  const int edges = n - 1;
  const int chunks = std::clamp(static_cast<int>(std::ceil(shape.bytes / kChunkBytes)), 1, kMostChunks);
  const double chunk = shape.bytes / chunks;
  Schedule schedule;
  schedule.steps = chunks + edges - 1;
  schedule.latency_steps = edges;
  schedule.fill_bytes = (edges - 1) * chunk;
  schedule.transfers_of_step = [=](int step, std::vector<Transfer>& transfers) {
    for (int edge = std::max(0, step - chunks + 1); edge <= std::min(step, edges - 1); ++edge) {
      transfers.push_back({(first + edge) % n, (first + edge + 1) % n, chunk});
    }
  };
  for (int edge = 0; edge < edges; ++edge) {
    schedule.flows.push_back({(first + edge) % n, (first + edge + 1) % n, shape.bytes});
  }
  return schedule;
}

}  // namespace

Schedule RingAlgorithm::plan(const CollectiveShape& shape) const {
  return has_root(shape.kind) ? plan_chain(shape) : plan_ring(shape);
}

Schedule PairwiseExchange::plan(const CollectiveShape& shape) const {
  const int n = shape.devices;
  const double share = shape.bytes / n;
  Schedule schedule;
  schedule.steps = n - 1;
  schedule.latency_steps = schedule.steps;
  schedule.transfers_of_step = [n, share](int step, std::vector<Transfer>& transfers) {
    for (int i = 0; i < n; ++i) transfers.push_back({i, (i + step + 1) % n, share});
  };
  for (int step = 0; step < schedule.steps; ++step) schedule.transfers_of_step(step, schedule.flows);
  return schedule;
}

}  // namespace tandem::sim
