#include "topologies/arcs.h"

#include "topologies/graph.h"

namespace tandem {

Arcs::Arcs(const Topology& topology) : topology_(topology) {
  for (int worker = 0; worker < topology.machine_count(); ++worker) {
    const Topology& machine = topology.machine(worker);
    if (!machines_.contains(&machine)) add_machine(machine);
  }
  starts_.assign(topology.node_count() + 1, 0);
  const auto each_end = [&](auto&& visit) {
    for (LinkIndex index = topology.machine_links(); index < topology.link_count(); ++index) {
      const Link& link = topology.link(index);
      visit(link.from, link.to, Edge{index, true}, *link.model);
      if (link.direction != Direction::one_way) visit(link.to, link.from, Edge{index, false}, *link.model);
    }
  };
  each_end([this](NodeIndex from, NodeIndex, Edge, const LinkModel&) { ++starts_[from + 1]; });
  for (std::size_t node = 0; node < topology.node_count(); ++node) starts_[node + 1] += starts_[node];
  arcs_.resize(starts_.back());
  std::vector<std::uint32_t> next(starts_.begin(), starts_.end() - 1);
  each_end([&](NodeIndex from, NodeIndex to, Edge edge, const LinkModel& model) {
    arcs_[next[from]++] = {to, edge, cost_of(model)};
  });
  const auto by_worker = [&](const Arc& a, const Arc& b) { return topology.worker(a.to) < topology.worker(b.to); };
  for (std::size_t node = 0; node < topology.node_count(); ++node) {
    const auto first = arcs_.begin() + starts_[node];
    const auto last = arcs_.begin() + starts_[node + 1];
    if (!std::is_sorted(first, last, by_worker)) std::stable_sort(first, last, by_worker);
  }
}

void Arcs::add_machine(const Topology& machine) {
  const Graph graph = graph_of(machine);
  Machine& made = machines_[&machine];
  for (NodeIndex node = 0; node < machine.node_count(); ++node) {
    made.starts.push_back(static_cast<std::uint32_t>(made.arcs.size()));
    for (auto [edge, end] = boost::out_edges(node, graph); edge != end; ++edge) {
      const Edge& crossed = graph[*edge];
      made.arcs.push_back(
          {static_cast<NodeIndex>(boost::target(*edge, graph)), crossed, cost_of(machine.link_model(crossed.link))});
    }
  }
  made.starts.push_back(static_cast<std::uint32_t>(made.arcs.size()));
}

std::span<const Arc> Arcs::added(NodeIndex node, int worker) const {
  const std::span<const Arc> all(arcs_.data() + starts_[node], starts_[node + 1] - starts_[node]);
  const auto first = std::lower_bound(all.begin(), all.end(), worker,
                                      [this](const Arc& arc, int value) { return topology_.worker(arc.to) < value; });
  const auto last = std::upper_bound(first, all.end(), worker,
                                     [this](int value, const Arc& arc) { return value < topology_.worker(arc.to); });
  return {first, last};
}

}  // namespace tandem
