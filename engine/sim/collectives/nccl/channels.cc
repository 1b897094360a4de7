#include "engine/sim/collectives/nccl/channels.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <span>

#include "engine/sim/collectives/nccl/constants.h"

namespace tandem::sim::nccl {
namespace {

constexpr double kSlack = 1e-9;

std::span<const double> speeds_of(const Machine& machine) {
  const bool is_inter = machine.domains > 1;
  if (machine.capability == 0 && !is_inter) return kIntraSpeedsAmd;
  if (machine.capability >= 100)
    return is_inter ? std::span<const double>(kInterSpeedsBlackwell) : kIntraSpeedsBlackwell;
  if (machine.capability >= 90) return is_inter ? std::span<const double>(kInterSpeedsHopper) : kIntraSpeedsHopper;
  return is_inter ? std::span<const double>(kInterSpeeds) : kIntraSpeeds;
}

int times(double total, double part) {
  return static_cast<int>(total / part + kSlack);
}

struct Found {
  int channels = 0;
  double speed = 0;
  Packing packing{};
};

// The channels that fit at one speed.
Found channels_at(const Machine& machine, double speed) {
  Found found{.channels = kMostChannels, .speed = speed};
  if (machine.domains > 1) found.channels = std::min(found.channels, machine.nics * times(machine.nic_gbs, speed));
  if (machine.gpus == 1 || found.channels == 0) return found;
  if (machine.intra == Intra::nvlink_mesh) {
    const Mesh mesh{machine.mesh_size(), machine.gpus, machine.mesh_gbs};
    found.packing = pack_rings(mesh, speed, found.channels, machine.domains > 1);
    found.channels = static_cast<int>(found.packing.orders.size());
    return found;
  }
  found.channels = std::min(found.channels, times(machine.gpu_gbs, speed));
  return found;
}

double best_total(const Machine& machine) {
  double total = 0;
  if (machine.intra == Intra::nvlink_mesh) {
    for (int other = 0; other < machine.gpus; ++other) total += machine.mesh(0, other);
  } else {
    total = machine.gpu_gbs;
  }
  if (machine.gpus == 1) total = machine.nics * machine.nic_gbs;
  return machine.domains > 1 ? std::min(total, machine.nics * machine.nic_gbs) : total;
}

double slowest_link_gbs(const Machine& machine) {
  double least = machine.domains > 1 ? machine.nic_gbs : std::numeric_limits<double>::infinity();
  if (machine.gpus == 1) return least;
  if (machine.intra != Intra::nvlink_mesh) return std::min(least, machine.gpu_gbs);
  for (const double gbs : machine.mesh_gbs) {
    if (gbs > 0) least = std::min(least, gbs);
  }
  return least;
}

// Walks the speeds downward and keeps the one with the largest total; among equals, the fastest.
Found search(const Machine& machine) {
  Found best;
  const double bound = best_total(machine);
  const auto speeds = speeds_of(machine);
  for (const double speed : speeds) {
    const double best_gbs = best.channels * best.speed;
    if (best.channels > 0 && (speed <= 0.49 * best.speed || best_gbs >= bound - kSlack)) break;
    Found found = channels_at(machine, speed);
    if (found.channels * speed > best_gbs + kSlack) best = std::move(found);
  }
  // Slower than any speed of the list.
  if (best.channels == 0 && bound > 0) best = channels_at(machine, slowest_link_gbs(machine));
  return best;
}

// Two slower channels for each fast one, as ncclTopoDupChannels does.
void duplicate(const Machine& machine, Graph& graph) {
  if (graph.channels == 0 || graph.intra_gbs < 25) return;
  if (machine.capability > 80 && graph.intra_gbs < 50 && graph.channels > 4) return;
  const int doubled = std::min(2 * graph.channels, kMostChannels);
  const double factor = static_cast<double>(graph.channels) / doubled;
  graph = {doubled, graph.intra_gbs * factor, graph.inter_gbs * factor};
}

// Returns the rate that each ring or chain of a mesh can carry when all are active.
double share_of_links(const Machine& machine, const Found& found) {
  if (found.packing.crosses_gpus) return found.speed;
  std::vector<int> uses(machine.mesh_gbs.size(), 0);
  double least = std::numeric_limits<double>::infinity();
  const auto arc = [&](int from, int to) { return static_cast<std::size_t>(from * machine.mesh_size() + to); };
  for (int pass = 0; pass < 2; ++pass) {
    for (const Order& order : found.packing.orders) {
      const std::size_t hops = order.size() - (machine.domains > 1 ? 1 : 0);
      for (std::size_t i = 0; i < hops; ++i) {
        const std::size_t at = arc(order[i], order[(i + 1) % order.size()]);
        if (pass == 0) {
          ++uses[at];
        } else {
          least = std::min(least, machine.mesh_gbs[at] / uses[at]);
        }
      }
    }
  }
  return std::isfinite(least) ? least : found.speed;
}

bool is_full(const Machine& machine) {
  for (int from = 0; from < machine.gpus; ++from) {
    for (int to = 0; to < machine.gpus; ++to) {
      if (from != to && machine.mesh(from, to) != machine.mesh(0, 1)) return false;
    }
  }
  return true;
}

// With two domains, a tree may be faster inside them than between them, as far as the links allow.
Graph tree_of(const Machine& machine, const Graph& ring) {
  Graph tree = ring;
  const bool is_mesh = machine.intra == Intra::nvlink_mesh;
  if (machine.domains != 2 || machine.gpus == 1 || (is_mesh && !is_full(machine))) return tree;
  for (const double speed : speeds_of(machine)) {
    if (speed > 2 * ring.intra_gbs + kSlack || speed <= tree.intra_gbs) continue;
    const bool fits = is_mesh ? static_cast<int>(pack_rings({machine.mesh_size(), machine.gpus, machine.mesh_gbs},
                                                            speed, tree.channels, true)
                                                     .orders.size()) >= tree.channels
                              : speed * tree.channels <= machine.gpu_gbs + kSlack;
    if (fits) tree.intra_gbs = speed;
  }
  return tree;
}

// One graph channel for each GPU that reduces, its *head*. A head takes the speed from every GPU, and twice the speed
// from its own.
Graph nvls_of(const Machine& machine) {
  if (machine.capability < 90 || machine.intra != Intra::nvswitch || machine.gpus < 3) return {};
  const int heads = std::min(machine.gpus, kMostNvlsHeads);
  const std::span<const double> speeds =
      machine.capability >= 100 ? std::span<const double>(kIntraSpeedsBlackwell) : kIntraSpeedsHopper;
  double speed = machine.gpu_gbs / (heads + 1);
  for (const double tried : speeds) {
    if (tried > speed + kSlack) continue;
    speed = tried;
    break;
  }
  const double inter_gbs = machine.domains > 1 ? machine.nics * machine.nic_gbs / heads : speed;
  double inter = inter_gbs;
  if (machine.domains > 1) {
    const auto inter_speeds = speeds_of(machine);
    const auto fits = std::find_if(inter_speeds.begin(), inter_speeds.end(),
                                   [&](double tried) { return tried <= inter_gbs + kSlack; });
    if (fits != inter_speeds.end()) inter = *fits;
  }
  return {heads, speed, inter};
}

bool has_same_channels(const Machine& machine, const Found& found) {
  const std::vector<Order>& orders = found.packing.orders;
  if (machine.gpus == 1 || found.channels < 2) return true;
  if (machine.domains > 1 && machine.nics > 1) return false;
  return machine.gpus == 2 || std::ranges::adjacent_find(orders, std::not_equal_to<>()) == orders.end();
}

int thread_blocks_of(const Machine& machine, const Graph& ring) {
  int blocks = 2 * ring.channels;
  if (machine.capability >= 90 && machine.domains > 1 && ring.intra_gbs > 45 && blocks < 16) blocks *= 2;
  return std::min(blocks, kMostChannels);
}

}  // namespace

int Machine::mesh_size() const {
  return static_cast<int>(std::lround(std::sqrt(static_cast<double>(mesh_gbs.size()))));
}

Graphs find_graphs(const Machine& machine, int least, int most) {
  Graphs graphs;
  Found found = search(machine);
  const double mesh_gbs = found.channels * share_of_links(machine, found);
  graphs.ring = {found.channels, found.speed, found.speed};
  graphs.has_same_channels = has_same_channels(machine, found);
  graphs.orders = std::move(found.packing.orders);
  graphs.crosses_gpus = found.packing.crosses_gpus;
  duplicate(machine, graphs.ring);
  graphs.tree = tree_of(machine, graphs.ring);
  graphs.nvls = nvls_of(machine);
  graphs.thread_blocks = thread_blocks_of(machine, graphs.ring);
  graphs.nvls_thread_blocks = machine.capability >= 100 ? kNvlsThreadBlocksBlackwell : kNvlsThreadBlocksHopper;
  if (machine.intra == Intra::nvlink_mesh) {
    graphs.ring_wire_gbs = mesh_gbs * (graphs.crosses_gpus ? kCrossingShare : machine.mesh_wire_factor);
  } else {
    graphs.ring_wire_gbs = machine.gpus == 1 ? machine.nics * machine.nic_gbs : machine.gpu_wire_gbs;
  }
  if (least > 0) graphs.thread_blocks = std::max(graphs.thread_blocks, std::min(least, kMostChannels));
  if (most > 0) {
    const int all = graphs.thread_blocks;
    graphs.thread_blocks = std::min(all, most);
    // A thread block carries the rate that its channel has in the graph.
    if (all > graphs.thread_blocks) {
      graphs.ring_wire_gbs *= static_cast<double>(graphs.thread_blocks) / all;
      const int left = std::max(1, std::min(graphs.ring.channels, most));
      graphs.ring.channels = graphs.tree.channels = left;
    }
    graphs.nvls_thread_blocks = std::min(graphs.nvls_thread_blocks, most);
  }
  return graphs;
}

}  // namespace tandem::sim::nccl
