// Reads `workload.sequences`: documents of different lengths that are packed into the sequences of a batch.
#pragma once

#include <filesystem>

#include "scenarios/scenario/scenario.h"
#include "topologies/base/strict_yaml.h"

namespace tandem {

// Changes the share of pairs of tokens that attention computes. Does nothing where the key is missing.
void read_sequences(const YamlReader& map, const std::filesystem::path& folder, LayersSettings& layers);

}  // namespace tandem
