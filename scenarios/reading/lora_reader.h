// Reads `workload.lora`: which layers of a frozen model have low-rank adapters that learn.
#pragma once

#include "scenarios/scenario/scenario.h"
#include "topologies/base/strict_yaml.h"

namespace tandem {

// Changes the table of layers. Does nothing where the key is missing.
void read_lora(const YamlReader& map, LayersSettings& layers);

}  // namespace tandem
