// A topology as a directed graph of the Boost Graph Library. Heavy to compile: include it only in sources that run
// graph algorithms.
#pragma once

#include <boost/graph/adjacency_list.hpp>

#include "topologies/routing.h"
#include "topologies/topology.h"

namespace tandem {

using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, Edge>;

// Returns the graph whose vertices are the nodes, by their index. A link is one edge in each direction that it carries
// data in: two, or one for a one-way link. The edges out of a vertex come in the order of their links.
Graph graph_of(const Topology& topology);

}  // namespace tandem
