// A topology for people: as text, as a picture, and as findings of what is wrong with it.
#pragma once

#include <string>
#include <vector>

#include "topologies/topology.h"

namespace tandem {

inline constexpr std::size_t kMostFlowNodes = 20'000;  // of the largest topology whose bisection is computed

// Prints the tree of a machine, its paths as `nvidia-smi topo -m` prints them, rings, rails, bisection bandwidth, and
// where every figure comes from. For a cluster, prints the first machine and how it is joined to the others.
std::string topology_text(const Topology& topology);

// Draws the first machine as an SVG picture: processors, what hangs below each, and NVLink.
std::string topology_svg(const Topology& topology);

// A finding of a check: a problem, which no real machine has, or something that is only missing.
struct TopologyFinding {
  bool is_problem = false;
  std::string text;
};
// Finds what is missing and what is implausible: a GPU slower than its NIC, a NIC that is not connected, half the links
// of a twin.
std::vector<TopologyFinding> check_topology(const Topology& topology);

}  // namespace tandem
