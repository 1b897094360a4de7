// The network between the machines of a cluster.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/topology.h"

namespace tandem {

enum class FabricKind : std::uint8_t {
  single_switch,  // one switch that never blocks: the network is as fast as its NICs
  leaf_spine,     // a two-level fat tree; all NICs of a worker on one leaf
  rail,           // a two-level fat tree; NIC i of every worker of a group on leaf i, as in NVIDIA's SuperPOD
  fat_tree,       // a three-level fat tree: pods of leaves and spines, joined by cores
  torus,          // a router beside every machine, with cables to the routers before and after it in each dimension
  dragonfly,  // dragonfly+: pods of leaves and spines; spine i of each pod has a cable to spine i of every other one
};
std::string_view name_of(FabricKind kind);  // "switch", "leaf_spine", "rail", "fat_tree", "torus", "dragonfly"

struct Fabric {
  FabricKind kind = FabricKind::single_switch;
  int workers_per_leaf = 32;          // trees: how many workers share a leaf (a group of rails)
  int spines = 4;                     // trees: equal paths between two leaves (of a pod)
  double oversubscription = 1;        // trees: bandwidth into a leaf / bandwidth up to the spines. torus: NICs / cable
  int leaves_per_pod = 16;            // fat_tree, dragonfly: leaves, or groups of rails, below the same spines
  int cores_per_spine = 4;            // fat_tree: how many cores join the first spines of all pods, the second, ...
  double core_oversubscription = 1;   // fat_tree, dragonfly: bandwidth into a spine / to the cores, or to other pods
  bool rails = false;                 // fat_tree, dragonfly: NIC i of every worker of a group on leaf i
  std::vector<int> dimensions{};      // torus: machines along each; the last one varies fastest
  std::optional<Figure> latency_s{};  // of every cable; empty: that of the NIC's port
  std::optional<Figure> nic_bandwidth_bytes_per_s{};  // of NICs and their cables; empty: that of the NIC's port
  std::vector<std::string> nics{};                    // the NICs that are connected; empty: all with a known port
  std::optional<std::string> transport{};             // as in LinkModel; empty: that of the NIC's port
  // As in LinkModel; empty: those of the NIC's port, or of `transport` if it is another.
  std::optional<Figure> hop_latency_s{}, advertised_latency_s{};
};

}  // namespace tandem
