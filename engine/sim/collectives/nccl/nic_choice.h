// Which NICs a GPU uses.
#pragma once

#include <utility>
#include <vector>

#include "engine/sim/collectives/nccl/domain_map.h"

namespace tandem::sim::nccl {

struct ChosenNics {
  std::vector<NodeIndex> nics{};
  std::size_t first_choices = 0;  // so many, at the front, are the first choice of a GPU
};

class NicChoice {
 public:
  // Both must outlive it.
  NicChoice(const Topology& topology, const DomainMap& map) : topology_(topology), map_(map) {}

  // Returns the NICs that these GPUs use, if a group has only some of the `gpus` of a machine, or of an NVLink domain:
  // each takes those of its own machine that are nearest to it, as many as its own link to the host can use, because
  // NCCL's search knows no other GPU through which data could go, but none that it reaches through a narrower link.
  // GPUs that share near NICs begin with different ones, and the search uses these before others (ncclTopoSelectNets
  // and ncclTopoGetLocalNet in src/graph/{search,topo}.cc, 2.28.9). Of one GPU, the nearest come first.
  ChosenNics chosen(const std::vector<NodeIndex>& gpus, const std::vector<NodeIndex>& nics,
                    const std::vector<NodeIndex>& members) const;
  // Whether the node is a NIC with a cable.
  bool is_connected(NodeIndex node) const;
  // Whether a NIC reaches a GPU through PCIe switches alone.
  bool has_near_gpu(NodeIndex nic) const;
  // Whether a NIC is at a processor to which a GPU has a C2C link.
  bool has_gpu_over_c2c(NodeIndex nic) const;

 private:
  // As NCCL's types of paths distinguish them: the number of links between CPUs on the way, and of CPUs.
  using Distance = std::pair<int, int>;
  Distance distance(NodeIndex from, NodeIndex nic) const;
  double gbs_of_cable(NodeIndex nic) const;
  std::vector<NodeIndex> over_switches(NodeIndex nic) const;
  std::vector<NodeIndex> by_distance(NodeIndex from, const std::vector<NodeIndex>& gpus,
                                     const std::vector<NodeIndex>& nics) const;

  const Topology& topology_;
  const DomainMap& map_;
};

}  // namespace tandem::sim::nccl
