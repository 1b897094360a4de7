// Reads the layers of a model file: docs/workloads.md describes their forms.
#pragma once

#include <vector>

#include "scenarios/model/model_sizes.h"
#include "strategies/model/model.h"

namespace tandem {

inline constexpr std::int64_t kMostModelElements = std::int64_t{1} << 40;

// Expands groups that repeat into copies, named "encoder.0.query" and so on.
std::vector<Layer> read_model_layers(const YamlReader& list, const ModelSizes& sizes);

// Reads `stack`; keeps what `stack` says where the file says nothing.
Stack read_stack(const YamlReader& map, Stack stack);

}  // namespace tandem
