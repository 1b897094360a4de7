// Input files of the command line.
#pragma once

#include <memory>
#include <string>

#include "cli/common_options.h"
#include "scenarios/scenario.h"
#include "topologies/readers/import.h"
#include "topologies/topology.h"

namespace tandem {

// All throw InputError; its message for a missing file suggests the file of that folder with the nearest name.
Scenario scenario_from(const std::string& file);

// A topology file of any kind; "" gives none. What was assumed in reading it goes to stderr, unless quiet.
std::shared_ptr<const Topology> topology_from(const std::string& file, const CommonOptions& common = {},
                                              const std::string& complete_with = "");

// The same, or a machine of the catalog by its name. Notes are the caller's.
ImportedTopology topology_named(const std::string& name_or_file, const ImportOptions& options = {});

// Prints what a reader assumed to stderr, unless quiet.
void print_notes(const std::vector<std::string>& notes, const CommonOptions& common);

}  // namespace tandem
