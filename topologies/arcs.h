// The edges of a topology as searches for routes need them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "topologies/graph.h"
#include "topologies/routing.h"

namespace tandem {

using Picoseconds = std::uint64_t;  // whole numbers, so that equal paths cost exactly the same

// The latency of a link and the time that a reference message takes on it.
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
};

// The arcs out of every node, sorted by the worker they lead into. A fabric switch may have 16,384 ports, and a search
// looks only at those of two workers.
class Arcs {
 public:
  explicit Arcs(const Topology& topology) : topology_(topology) {
    const Graph graph = graph_of(topology);
    starts_.reserve(topology.node_count() + 1);
    arcs_.reserve(boost::num_edges(graph));
    const auto by_worker = [this](const Arc& a, const Arc& b) { return worker(a) < worker(b); };
    for (NodeIndex node = 0; node < topology.node_count(); ++node) {
      starts_.push_back(arcs_.size());
      for (auto [edge, end] = boost::out_edges(node, graph); edge != end; ++edge) {
        arcs_.push_back({static_cast<NodeIndex>(boost::target(*edge, graph)), graph[*edge]});
      }
      const auto first = arcs_.begin() + static_cast<std::ptrdiff_t>(starts_.back());
      if (!std::is_sorted(first, arcs_.end(), by_worker)) std::stable_sort(first, arcs_.end(), by_worker);
    }
    starts_.push_back(arcs_.size());
    costs_.reserve(topology.link_count());
    for (LinkIndex link = 0; link < topology.link_count(); ++link) {
      costs_.push_back(cost_of(*topology.link(link).model));
    }
  }

  // Returns the arcs from `node` to nodes of a worker, or of the fabric for kNoWorker.
  std::span<const Arc> into(NodeIndex node, int worker_index) const {
    const std::span<const Arc> all(arcs_.data() + starts_[node], starts_[node + 1] - starts_[node]);
    const auto first = std::lower_bound(all.begin(), all.end(), worker_index,
                                        [this](const Arc& arc, int value) { return worker(arc) < value; });
    const auto last = std::upper_bound(first, all.end(), worker_index,
                                       [this](int value, const Arc& arc) { return value < worker(arc); });
    return {first, last};
  }

  Picoseconds cost(const Arc& arc) const { return costs_[arc.edge.link]; }

 private:
  int worker(const Arc& arc) const { return topology_.node(arc.to).worker; }
  const Topology& topology_;
  std::vector<std::size_t> starts_;
  std::vector<Arc> arcs_;
  std::vector<Picoseconds> costs_;  // by link
};

}  // namespace tandem
