// Reads ASTRA-sim's analytical network: dimensions of rings, switches and complete graphs. The first dimension is
// inside a machine, the others join machines. Its GB are 2^30 bytes.
#pragma once

#include <string>
#include <string_view>

#include "topologies/readers/import.h"

namespace tandem {

bool is_astra_network(std::string_view text);
ImportedTopology import_astra_network(std::string_view text, const std::string& file, const ImportOptions& options);

}  // namespace tandem
