// Reads what a scenario computes again before its backward pass: `workload.activation_checkpointing`.
#pragma once

#include "scenarios/scenario/scenario.h"
#include "topologies/base/strict_yaml.h"

namespace tandem {

// Needs the model of `layers`, and marks its layers where they are computed again by themselves.
void read_recomputation(const YamlReader& value, LayersSettings& layers);

}  // namespace tandem
