// `overrides:` of single nodes and links, by their names. For the readers of this folder.
//
//   gpu3, *.gpu3               GPU 3 of every machine
//   w1.gpu3                    that of worker 1
//   w1.nic*                    NICs, with their cables
//   fabric.leaf0               a switch: all its links
//   w1.gpu3 - w1.nvswitch0     the links between two nodes
//
// Devices take the figures of device models; NICs, switches and links those of link models. All take `slowdown`.
#pragma once

#include <string>
#include <vector>

#include "topologies/base/strict_yaml.h"
#include "topologies/topology.h"

namespace tandem {

// Return what an override makes of a model: the figures that `map` gives, and every rate and time of the device, or the
// bandwidth of the link, changed by `slowdown`.
DeviceModel overridden(const DeviceModel& model, const YamlReader& map);
LinkModel overridden(const LinkModel& model, const YamlReader& map);

// One key of `overrides` that names no model, and its value. `w1: {gpu3: {...}}` is read as `w1.gpu3: {...}`.
struct NodeOverride {
  std::string key;
  YamlReader map;
};
std::vector<NodeOverride> node_overrides(const std::string& key, const YamlReader& map);

// Whether the key names nodes of every machine.
bool is_for_every_machine(const std::string& key);

// Changes the nodes or links that a key names, and adds a note that says so. Returns false if there are none.
bool apply(const NodeOverride& change, Topology& topology);

// Reports that a key names nothing, with the name nearest to it among `models` and the nodes of the topology.
void report_unknown(const NodeOverride& change, const Topology& topology, std::vector<std::string> models);

}  // namespace tandem
