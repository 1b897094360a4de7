// Reads what a scenario trains.
#pragma once

#include <filesystem>

#include "scenarios/scenario/scenario.h"
#include "topologies/base/strict_yaml.h"

namespace tandem {

class SharedParts;

// Reads the map at `workload:`. Finds files that it names relative to `folder`, and reports problems to the reader's
// diagnostics. Takes models from `parts` where these have them, and adds others to `parts`.
WorkloadSettings read_workload(const YamlReader& map, const std::filesystem::path& folder, SharedParts& parts);

}  // namespace tandem
