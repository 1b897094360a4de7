// Reads how rows reach the experts of a model and how many rows each expert gets: `workload.experts`.
#pragma once

#include <filesystem>

#include "scenarios/scenario/scenario.h"
#include "topologies/base/strict_yaml.h"

namespace tandem {

// Needs the model of `layers`. Files are searched in `folder`.
void read_experts(const YamlReader& map, const std::filesystem::path& folder, LayersSettings& layers);

}  // namespace tandem
