// Reads graphs in GraphML and in Graphviz' language with Boost.Graph. The attributes are those of docs/topology.md.
#pragma once

#include <string>
#include <string_view>

#include "topologies/readers/import.h"

namespace tandem {

bool is_dot(std::string_view text);
ImportedTopology import_dot(std::string_view text, const std::string& file, const ImportOptions& options);
ImportedTopology import_graphml(std::string_view text, const std::string& file, const ImportOptions& options);

}  // namespace tandem
