#include "topologies/graph.h"

namespace tandem {

Graph graph_of(const Topology& topology) {
  Graph graph(topology.node_count());
  for (LinkIndex index = 0; index < topology.link_count(); ++index) {
    const Link& link = topology.link(index);
    boost::add_edge(link.from, link.to, Edge{index, true}, graph);
    if (link.direction != Direction::one_way) boost::add_edge(link.to, link.from, Edge{index, false}, graph);
  }
  return graph;
}

}  // namespace tandem
