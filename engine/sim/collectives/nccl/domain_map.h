// What every survey of a topology needs: the links of each node, and the domains.
#pragma once

#include <vector>

#include "topologies/routing.h"
#include "topologies/topology.h"

namespace tandem::sim::nccl {

// The links of each node.
class Neighbours {
 public:
  explicit Neighbours(const Topology& topology) : topology_(topology), links_(topology.node_count()) {
    for (LinkIndex index = 0; index < topology.link_count(); ++index) {
      const Link& link = topology.link(index);
      links_[link.from].push_back(index);
      links_[link.to].push_back(index);
    }
  }

  template <typename Call>
  void each(NodeIndex node, LinkKind kind, Call&& call) const {
    for (const LinkIndex index : links_[node]) {
      const Link& link = topology_.link(index);
      if (link.model->kind == kind) call(link.from == node ? link.to : link.from, *link.model);
    }
  }

 private:
  const Topology& topology_;
  std::vector<std::vector<LinkIndex>> links_;
};

// Machines, joined where NVLink joins them.
struct DomainMap {
  // Both must outlive it.
  DomainMap(const Topology& topology, Router& router);

  Neighbours neighbours;
  Router& router;
  std::vector<int> domain_of;                    // by node
  std::vector<std::vector<NodeIndex>> nodes_of;  // by domain
};

}  // namespace tandem::sim::nccl
