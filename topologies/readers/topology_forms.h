// The forms of a topology file (docs/topology.md), for the readers of this folder. All of them add problems to the
// reader's diagnostics; where a form returns nothing, there were some.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "topologies/base/strict_yaml.h"
#include "topologies/readers/node_overrides.h"
#include "topologies/topology.h"

namespace tandem {

// Device or link models by their name in the file.
template <typename Model>
using Models = std::map<std::string, std::shared_ptr<const Model>>;

template <typename Value>
std::vector<std::string> keys_of(const std::map<std::string, Value>& values) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : values) keys.push_back(key);
  return keys;
}

// How many topology files lead to the one that is read, each naming the next. A scenario's own topology may name files
// anywhere; a topology file only those in its folder or below, so that a file from elsewhere cannot reach others.
inline constexpr int kDepthInScenario = 0;
inline constexpr int kDepthInFile = 1;

// Returns the file that `value` names, relative to the file that names it. Reports a file that does not exist, or that
// is outside the folder of the topology file that names it, and returns nothing.
std::optional<std::filesystem::path> named_file(const YamlReader& value, int depth);

// Reads any form. The limit of `depth` ends files that name each other in a circle.
std::optional<Topology> read_topology_form(const YamlReader& map, const std::string& default_name, int depth);

// Reads `cluster:`, copies of one machine behind a fabric.
std::optional<Topology> read_cluster(const YamlReader& cluster, const std::string& name, int depth);

// Reads `based_on:`, another machine or cluster with some figures replaced and some nodes left out.
std::optional<Topology> read_variant(const YamlReader& map, const std::string& name, int depth);

// Reads the machine that `machine` names: one of the catalog, or a file beside the one that names it. `map` may have
// `complete_with`, the machine from which a partial file is completed, and `gpu`, the product of its GPUs.
// A file may describe a cluster only where `may_be_cluster`.
std::optional<Topology> read_machine(const YamlReader& machine, const YamlReader& map, int depth,
                                     bool may_be_cluster = false);

// Reads the keys that any form may have, how transfers go between GPUs and machines, and the price and power of one
// machine; changes what is there.
void read_common_keys(const YamlReader& map, Topology& topology);

// Read `cluster:` whose `fabric` is a file: the output of ibnetdiscover, or Slurm's topology.conf.
bool has_fabric_file(const YamlReader& cluster);
std::optional<Topology> read_cluster_of_files(const YamlReader& cluster, const Topology& machine,
                                              const std::string& name, int depth);

}  // namespace tandem
