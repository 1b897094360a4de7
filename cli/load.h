// Input files of the command line.
#pragma once

#include <memory>
#include <string>

#include "scenarios/scenario.h"
#include "topologies/topology.h"

namespace tandem {

// Both throw InputError; its message for a missing file suggests the file of that folder with the nearest name.
Scenario scenario_from(const std::string& file);
std::shared_ptr<const Topology> topology_from(const std::string& file);  // "" gives none

}  // namespace tandem
