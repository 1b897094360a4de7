// The catalog of machines: topologies/catalog has a topology file for each.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/topology.h"

namespace tandem {

// Finds a file that comes with Tandem, such as "topologies/catalog/hgx-h100.yaml", in $TANDEM_DATA_DIR, beside the
// running program (../share/tandem), in the source tree it was built from, or in the install prefix. Throws
// tandem::Error naming these places when it is in none of them.
std::filesystem::path find_data(const std::filesystem::path& relative);

std::vector<std::string> catalog_names();  // sorted

// Returns the file of a machine of the catalog. Throws tandem::Error, as find_data() does, for an unknown name.
std::filesystem::path catalog_file(std::string_view name);

// Loads one machine, a template for make_cluster. Its nodes are named "gpu0", "cpu0", "nic1", all of worker 0. Throws
// InputError for an unknown name (with a suggestion) or a broken file.
Topology load_catalog_node(std::string_view name);

}  // namespace tandem
