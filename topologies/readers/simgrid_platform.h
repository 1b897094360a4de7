// Reads SimGrid platforms (simgrid.dtd 4.1): hosts, links, routes of listed links, flat clusters. A host is a machine
// unless its properties say otherwise, as in platforms that `tandem topology convert` writes.
#pragma once

#include <string>
#include <string_view>

#include "topologies/readers/import.h"

namespace tandem {

ImportedTopology import_simgrid_platform(std::string_view text, const std::string& file, const ImportOptions& options);

}  // namespace tandem
