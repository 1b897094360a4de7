// The edges of a topology, arranged for route searches. Edges inside machines that are alike are stored once.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "topologies/routing.h"

namespace tandem {

using Picoseconds = std::uint64_t;  // whole numbers, so that equal paths cost exactly the same

// Returns the cost of a link: its latency plus the time that a reference message takes on it.
inline Picoseconds cost_of(const LinkModel& model) {
  constexpr double kReferenceBytes = 1 << 20;
  constexpr double kMost = 1e16;  // a thousand such hops still fit into 64 bits
  const double seconds = model.latency_s.value + kReferenceBytes / model.bandwidth_bytes_per_s.value;
  return static_cast<Picoseconds>(std::clamp(std::round(seconds * 1e12), 1.0, kMost));
}

// An edge of the graph.
struct Arc {
  NodeIndex to = 0;
  Edge edge;
  Picoseconds cost = 0;
};

class Arcs {
 public:
  explicit Arcs(const Topology& topology);

  // Visits the arcs from `node` to nodes of a worker, or of the fabric for kNoWorker, in the order of their links. A
  // fabric switch may have 16,384 ports, of which a search needs only those to two workers.
  template <typename Visit>
  void each(NodeIndex node, int worker, Visit&& visit) const {
    if (node < topology_.machine_nodes()) each_in_machine(node, worker, visit);
    for (const Arc& arc : added(node, worker)) visit(arc);
  }

  // The arcs of one machine.
  struct Machine {
    std::vector<std::uint32_t> starts;  // by node
    std::vector<Arc> arcs;              // to nodes of the machine, over its links
  };
  const Machine& machine(int worker) const {
    return machines_.size() == 1 ? machines_.begin()->second : machines_.at(&topology_.machine(worker));
  }

 private:
  template <typename Visit>
  void each_in_machine(NodeIndex node, int worker, Visit& visit) const {
    const NodeIndex number = node / topology_.nodes_of_machine();
    if (static_cast<int>(number) != worker) return;
    const NodeIndex first = number * topology_.nodes_of_machine();
    const Machine& like = machine(worker);
    for (std::uint32_t i = like.starts[node - first]; i < like.starts[node - first + 1]; ++i) {
      const Arc& arc = like.arcs[i];
      visit(Arc{first + arc.to, {number * topology_.links_of_machine() + arc.edge.link, arc.edge.forward}, arc.cost});
    }
  }
  std::span<const Arc> added(NodeIndex node, int worker) const;
  void add_machine(const Topology& machine);

  const Topology& topology_;
  std::map<const Topology*, Machine> machines_;
  // Arcs over links that were added one by one, sorted by the worker that they lead into.
  std::vector<std::uint32_t> starts_;  // by node
  std::vector<Arc> arcs_;
};

}  // namespace tandem
