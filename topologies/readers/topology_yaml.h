// Tandem's own topology files, docs/topology.md: read strictly, and written so that reading them again gives
// exactly the same Topology. Everything wrong in a file is thrown at once, as one InputError.
#pragma once

#include <filesystem>
#include <optional>
#include <ostream>
#include <string>

#include "topologies/base/strict_yaml.h"
#include "topologies/topology.h"

namespace tandem {

// Reads a topology file in either form: explicit (device_models, link_models, nodes, links) or `cluster:`.
Topology read_topology_yaml(const std::filesystem::path& path);

// The same for text in memory. `file` names it in messages, and node files are found relative to its folder.
Topology parse_topology_yaml(std::string_view text, const std::string& file);

// The same for a topology written inside another file, such as a scenario: `map` holds either form, with or
// without schema_version and name. Problems go to the reader's diagnostics; then nothing is returned.
std::optional<Topology> read_topology_map(const YamlReader& map, const std::string& default_name);

// Writes the explicit form, every figure with its provenance. Throws tandem::Error when the stream fails.
void write_topology_yaml(const Topology& topology, std::ostream& stream);

}  // namespace tandem
