// Builds the network between the machines of a cluster: switches, and cables to the NICs and between switches.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "topologies/generators/fabric.h"

namespace tandem {

class FabricBuilder {
 public:
  using Cable = std::shared_ptr<const LinkModel>;

  // `nics` are those to connect, by worker, equally many for each. `cables` are the models of their cables, in the same
  // order.
  FabricBuilder(Topology& topology, const Fabric& fabric, std::vector<std::vector<NodeIndex>> nics,
                std::vector<Cable> cables)
      : topology_(topology), fabric_(fabric), nics_(std::move(nics)), cables_(std::move(cables)) {}

  // Throws tandem::Error saying which figures of the fabric do not fit.
  void build();

 private:
  // Switches of one level that serve the same workers, and the models of the cables up from each.
  struct Leaves {
    std::vector<NodeIndex> switches;
    std::vector<Cable> uplinks;
  };
  NodeIndex add_switch(const std::string& name);
  void add_single_switch();
  std::vector<Leaves> add_leaves(std::size_t leaves_of_a_group, const std::string& name);
  void add_two_levels(std::size_t leaves_of_a_group, const std::string& name);
  // Leaves below the spines of their pod.
  struct Pods {
    std::size_t count = 0;
    std::vector<NodeIndex> spines;  // pod by pod
    double bytes_per_s = 0;         // into a spine of a full pod
  };
  Pods add_pods();
  void add_three_levels();
  void add_dragonfly();
  void add_torus();
  void add_ring(std::size_t dimension, const std::vector<NodeIndex>& routers, const Cable& cable);
  double leaf_bytes_per_s(std::size_t place, std::size_t leaves_of_a_group) const;
  // Makes a cable between switches that is otherwise like the cable of the NIC at place `like`.
  Cable cable_up(double bytes_per_s, const std::string& source, std::size_t like = 0) const;

  Topology& topology_;
  const Fabric& fabric_;
  std::vector<std::vector<NodeIndex>> nics_;
  std::vector<Cable> cables_;
};

}  // namespace tandem
