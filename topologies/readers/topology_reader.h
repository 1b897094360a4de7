// Reads any topology file that Tandem knows; the content tells which kind it is.
#pragma once

#include <filesystem>
#include <string_view>

#include "topologies/readers/import.h"
#include "topologies/topology.h"

namespace tandem {

// A file that begins with '<' is NCCL XML; anything else is read as a Tandem topology in YAML or JSON.
Topology read_topology(const std::filesystem::path& path);

// The same with what is missing completed, and with notes on what was assumed.
ImportedTopology import_topology(const std::filesystem::path& path, const ImportOptions& options = {});

bool is_nccl_xml(std::string_view text);

}  // namespace tandem
