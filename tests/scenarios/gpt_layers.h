// The layers of the model gpt, or one tensor-parallel device's parts of them.
#pragma once

#include <vector>

#include "scenarios/model/model_reader.h"
#include "strategies/parallel/layout/layer_division.h"
#include "topologies/readers/catalog.h"

namespace tandem {

inline std::vector<Layer> gpt_layers(int blocks, int tensor = 1) {
  const Model model = read_model(find_data("scenarios/models/gpt.yaml"), {{"layers", blocks}});
  std::vector<Layer> parts;
  for (const Layer& layer : model.layers) parts.push_back(layer_part(layer, tensor, 0));
  return parts;
}

}  // namespace tandem
