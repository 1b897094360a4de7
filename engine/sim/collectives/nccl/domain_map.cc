#include "engine/sim/collectives/nccl/domain_map.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/connected_components.hpp>

namespace tandem::sim::nccl {
namespace {

// Numbers the domain of every node: machines, joined where NVLink joins them.
std::vector<int> domain_numbers(const Topology& topology) {
  using Undirected = boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS>;
  const std::size_t nodes = topology.node_count();
  Undirected graph(nodes + static_cast<std::size_t>(topology.worker_count()));
  for (NodeIndex node = 0; node < nodes; ++node) {
    const int worker = topology.node(node).worker;
    if (worker != kNoWorker) boost::add_edge(node, nodes + static_cast<std::size_t>(worker), graph);
  }
  for (LinkIndex index = 0; index < topology.link_count(); ++index) {
    const Link& link = topology.link(index);
    if (link.model->kind == LinkKind::nvlink) boost::add_edge(link.from, link.to, graph);
  }
  std::vector<int> numbers(boost::num_vertices(graph));
  boost::connected_components(graph, numbers.data());
  return numbers;
}

}  // namespace

DomainMap::DomainMap(const Topology& topology)
    : neighbours(topology), router(topology), domain_of(domain_numbers(topology)) {
  for (NodeIndex node = 0; node < topology.node_count(); ++node) {
    const auto domain = static_cast<std::size_t>(domain_of[node]);
    if (nodes_of.size() <= domain) nodes_of.resize(domain + 1);
    nodes_of[domain].push_back(node);
  }
}

}  // namespace tandem::sim::nccl
