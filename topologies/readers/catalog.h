// The machines Tandem knows: one topology file each under topologies/catalog.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/topology.h"

namespace tandem {

// A file that comes with Tandem, such as "topologies/catalog/hgx-h100.yaml". Looked for in $TANDEM_DATA_DIR,
// beside the running program (../share/tandem), in the source tree it was built from, and in the install
// prefix. Throws tandem::Error naming the places when it is in none of them.
std::filesystem::path find_data(const std::filesystem::path& relative);

std::vector<std::string> catalog_names();  // sorted

// One machine, its nodes named "gpu0", "cpu0", "nic1", all of worker 0: a template for make_cluster.
// Throws InputError for an unknown name (with a suggestion) or a broken file.
Topology load_catalog_node(std::string_view name);

}  // namespace tandem
