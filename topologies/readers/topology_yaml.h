// Tandem's own topology files (docs/topology.md). They are read strictly: all problems of a file are thrown as one
// InputError. A written file reads back as exactly the same Topology.
#pragma once

#include <filesystem>
#include <optional>
#include <ostream>
#include <string>

#include "topologies/base/strict_yaml.h"
#include "topologies/topology.h"

namespace tandem {

// Reads a topology file in any form: explicit (device_models, link_models, nodes, links), `based_on:` or `cluster:`.
Topology read_topology_yaml(const std::filesystem::path& path);

// Does the same for text in memory. `file` names it in messages, and node files are found relative to its folder.
Topology parse_topology_yaml(std::string_view text, const std::string& file);

// Does the same for a topology inside another file, such as a scenario: `map` has any form, with or without
// schema_version and name. Adds problems to the reader's diagnostics; returns nothing if there are any.
std::optional<Topology> read_topology_map(const YamlReader& map, const std::string& default_name);

// Does the same for the `workers` machines of a measurement. `map` has `node`, and may have the fabric and overrides as
// `cluster:` has them, `nics`, the NICs used, by name or as a number, and `p2p: false` as at the top of a topology
// file.
std::optional<Topology> read_cluster_map(const YamlReader& map, int workers);

// Writes the explicit form, with the provenance of every figure. Throws tandem::Error when the stream fails.
void write_topology_yaml(const Topology& topology, std::ostream& stream);

}  // namespace tandem
