// `overrides:` of a topology, by the names of models, nodes and links. For the readers of this folder.
//
//   gpu, network               a device or link model: everything that has it
//   gpu3, *.gpu3               GPU 3 of every machine
//   w1.gpu3                    that of worker 1
//   w1.nic*                    NICs, with their cables
//   fabric.leaf0               a switch: all its links
//   w1.gpu3 - w1.nvswitch0     the links between two nodes
//
// Devices take the figures of device models; NICs, switches and links those of link models. All take `slowdown`. Where
// several keys name one device or link, the last one that states a figure counts, and so for the slowdown.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/base/strict_yaml.h"
#include "topologies/topology.h"

namespace tandem {

class Overrides {
 public:
  // Reads the keys: an absent map has none. `w1: {gpu3: {...}}` is read as `w1.gpu3: {...}`.
  explicit Overrides(const YamlReader& map);

  // Changes what the keys name, adds a note for each key that names nodes or links, and reports to the reader's
  // diagnostics those that name nothing, with the nearest name.
  void apply(Topology& topology) const;

  // Together do the same for a cluster. Machines that are changed before the cluster is made of them stay alike.
  // The first returns the machine with what is changed in every machine. The second changes what the other keys name;
  // `plain` is the cluster that is made of the machine without overrides. It need not be called if no key is left.
  Topology in_every_machine(const Topology& machine);
  bool has_others() const;
  void apply_others(const Topology& plain, Topology& cluster) const;

 private:
  Overrides() = default;
  struct Key {
    std::string name;
    YamlReader map;
    bool is_in_every_machine = false;
  };
  enum class Use : bool { all, others };
  void change(const Topology& plain, Topology& topology, Use use) const;

  std::vector<Key> keys_{};
};

// Returns the nodes of a name, or of a pattern in which `*` is any text and `?` any character.
std::set<NodeIndex> nodes_named(std::string_view pattern, const Topology& topology);

}  // namespace tandem
