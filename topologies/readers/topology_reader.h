// Reads any topology file that Tandem knows; the content tells which kind it is.
#pragma once

#include <filesystem>
#include <string_view>

#include "topologies/readers/import.h"
#include "topologies/topology.h"

namespace tandem {

// Reads Tandem's own YAML or JSON, XML of NCCL and RCCL, GraphML, SimGrid's platforms, Graphviz, the text of
// `nvidia-smi topo -m`, of ibnetdiscover, of Slurm's topology.conf and topology.yaml, and ASTRA-sim's network.
Topology read_topology(const std::filesystem::path& path);

// Does the same, completes what is missing, and notes what was assumed.
ImportedTopology import_topology(const std::filesystem::path& path, const ImportOptions& options = {});

// Returns whether a text has Tandem's own form, which may name other files; import_text reads the others.
bool is_own_topology(std::string_view text);
ImportedTopology import_text(std::string_view text, const std::string& file, const ImportOptions& options);

}  // namespace tandem
