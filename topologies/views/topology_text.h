// A topology for people: as text, as a picture, and what is wrong with it.
#pragma once

#include <string>
#include <vector>

#include "topologies/topology.h"

namespace tandem {

// The tree of a machine, its paths as `nvidia-smi topo -m` prints them, rings, rails, bisection bandwidth, and where
// every figure comes from. Of a cluster the first machine and how it is joined to the others.
std::string topology_text(const Topology& topology);

// The first machine as an SVG picture: processors, what hangs below each, and NVLink.
std::string topology_svg(const Topology& topology);

// One finding of a check. `is_problem`: no machine is like this; else something that is only missing.
struct TopologyFinding {
  bool is_problem = false;
  std::string text;
};
// What is missing, and what is implausible: a GPU slower than its NIC, a NIC that is not connected, half the links of a
// twin.
std::vector<TopologyFinding> check_topology(const Topology& topology);

}  // namespace tandem
