// A graph of devices and links described in words, which the readers of GraphML, DOT, hwloc, SimGrid and ASTRA-sim
// build and which becomes a Topology. What it leaves open is borrowed (readers/import.h) and noted.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "topologies/base/strict_yaml.h"
#include "topologies/readers/import.h"

namespace tandem {

struct DescribedNode {
  std::string name{};
  std::string kind{};                        // gpu, cpu, nic, switch, ..., as in docs/topology.md
  std::optional<int> worker{};               // kNoWorker: of no machine
  std::string device{}, architecture{};      // a product's name; "sm_90"
  unsigned vendor = 0, product = 0;          // PCI ids
  double flops_per_s = 0;                    // of a processor; 0: not stated
  int cores = 0;                             // likewise
  double memory_bytes = 0;                   // likewise
  std::optional<double> port_bytes_per_s{};  // of a NIC
  std::string transport{};
  FilePlace place{};  // where the file describes it, if it says anything of it alone
};

struct DescribedLink {
  std::size_t from = 0, to = 0;
  std::string kind{};  // nvlink, pcie, c2c, cpu_interconnect, network; empty: by its ends
  std::optional<double> bytes_per_s{}, latency_s{};
  Direction direction = Direction::duplex;
  FilePlace place{};
};

struct DescribedGraph {
  std::vector<DescribedNode> nodes{};
  std::vector<DescribedLink> links{};
};

// Builds the topology. Throws InputError with every problem found.
ImportedTopology build_described(const DescribedGraph& graph, const std::string& file, const ImportOptions& options,
                                 const std::string& name);

}  // namespace tandem
