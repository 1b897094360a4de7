// Reads what a scenario trains.
#pragma once

#include <filesystem>

#include "scenarios/scenario.h"
#include "topologies/base/strict_yaml.h"

namespace tandem {

class SharedParts;

// The map at `workload:`. Files that it names are found from `folder`; what is wrong goes to the reader's diagnostics.
// `parts` has models that have been read, and gets those that have not.
WorkloadSettings read_workload(const YamlReader& map, const std::filesystem::path& folder, SharedParts& parts);

}  // namespace tandem
