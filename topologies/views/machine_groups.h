// Which machines of a cluster are alike, and what is odd in the others.
#pragma once

#include <string>
#include <vector>

#include "topologies/topology.h"

namespace tandem {

// A figure in which a machine differs from the usual one.
struct MachineDifference {
  NodeIndex node = 0, usual_node = 0;  // of the device or NIC, or one end of the link, in both machines
  std::string part;                    // "nic5", "gpu3 - nvswitch0", without the worker's prefix
  std::string what;                    // "GB/s", "TFLOPS of bf16"
  double value = 0, usual = 0;
  bool is_time = false;  // less is better
};

struct MachineGroup {
  std::vector<int> workers{};
  // The group has other nodes or links than the largest one, so that single figures cannot be compared.
  bool is_other_kind = false;
  // What is odd in it. Empty for the largest group.
  std::vector<MachineDifference> differences{};
};

// Returns the machines of a cluster by what they have, the largest group first. Takes memory for those machines that
// were not added by add_machines().
std::vector<MachineGroup> groups_of_machines(const Topology& topology);

// Returns "w0..w2, w4..w31".
std::string text_of_workers(const std::vector<int>& workers);

// Returns what is odd, a part each: "nic5: 12.5 GB/s (usual: 50)". Where several figures of a part differ,
// it has the first, and how many more there are.
std::vector<std::string> texts_of(const std::vector<MachineDifference>& differences);

}  // namespace tandem
