// What every survey of a topology needs: the links of each node, and the domains.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "topologies/routing.h"
#include "topologies/topology.h"

namespace tandem::sim::nccl {

// In GB/s, NCCL's unit.
inline double gbs_of(const LinkModel& model) {
  return model.bandwidth_bytes_per_s.value / 1e9;
}

// The links of each node. The links inside machines that are alike are stored once.
class Neighbours {
 public:
  explicit Neighbours(const Topology& topology);

  // Calls `call` with the node at the other end of each link of a kind, and the link's model.
  template <typename Call>
  void each(NodeIndex node, LinkKind kind, Call&& call) const {
    each_link(node, kind, [&](NodeIndex other, LinkIndex link) { call(other, topology_.link_model(link)); });
  }
  template <typename Call>
  void each_link(NodeIndex node, LinkKind kind, Call&& call) const {
    if (node < topology_.machine_nodes()) {
      const NodeIndex machine = node / topology_.nodes_of_machine();
      for (const LinkIndex index : in_machine_.of(node % topology_.nodes_of_machine())) {
        visit(node, machine * topology_.links_of_machine() + index, kind, call);
      }
    }
    for (const LinkIndex index : added_.of(node)) visit(node, index, kind, call);
  }

 private:
  // For each node a list of links.
  struct Lists {
    std::vector<std::uint32_t> starts;
    std::vector<LinkIndex> links;
    std::span<const LinkIndex> of(NodeIndex node) const {
      return {links.data() + starts[node], links.data() + starts[node + 1]};
    }
  };
  static Lists lists_of(const Topology& topology, LinkIndex first);

  template <typename Call>
  void visit(NodeIndex node, LinkIndex index, LinkKind kind, Call& call) const {
    if (topology_.link_model(index).kind != kind) return;
    const Link link = topology_.link(index);
    call(link.from == node ? link.to : link.from, index);
  }

  const Topology& topology_;
  Lists in_machine_, added_;
};

// Machines, joined where NVLink joins them.
class DomainMap {
 public:
  // Both must outlive it.
  DomainMap(const Topology& topology, Router& router);

  int domain_of(NodeIndex node) const;
  std::vector<NodeIndex> nodes_of(int domain) const;  // in ascending order

  // Returns what the latency of a link is above that of a usual link of its kind; of a route, the sum of its links.
  double unusual_us(LinkIndex link) const;
  double unusual_us(const Route& route) const;
  bool has_unusual_links() const { return has_unusual_links_; }

  const Neighbours neighbours;
  Router& router;

 private:
  const Topology& topology_;
  bool has_unusual_links_ = false;
  bool machines_are_domains_ = false;  // no NVLink leaves a machine that was added as one of many
  // The domains of the nodes from first_ on: of nodes that were added one by one, or of all nodes.
  NodeIndex first_ = 0;
  std::vector<int> numbers_;
  std::vector<std::vector<NodeIndex>> nodes_;
};

}  // namespace tandem::sim::nccl
