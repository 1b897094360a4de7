// Pure functions that divide a table of layers among tensor-parallel devices and pipeline stages, as Megatron-LM does
// (arXiv:1909.08053, arXiv:2104.04473). The layers of the model file say how each of them is split.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenarios/model.h"

namespace tandem {

// Why the model's layers cannot be divided among so many devices or stages, for messages; nothing where they can.
std::optional<std::string> tensor_problem(const Model& model, int devices);
std::optional<std::string> stage_problem(const Model& model, int stages);

// The part of a layer that device `part` of `parts` computes: a layer with the shapes and the parameters of that part.
// Rows of a table and outputs of a loss may differ by one among the devices.
Layer layer_part(const Layer& layer, int parts, int part);

// Whether a layer's output is a sum over the devices, and whether the gradient of its input is. Of neighbours that are
// split by columns, which share an input, the first one sums.
bool sums_output(const Layer& layer);
bool sums_input_gradient(const std::vector<Layer>& layers, std::size_t index);
// Whether each device has the loss of its part of the outputs only, so that maxima and sums of rows go around.
bool divides_loss(const Layer& layer);

// The first layer of each stage, and the number of layers: equal numbers of the copies of the group that repeats. What
// precedes the group belongs to the first stage, and what follows it to the last one.
std::vector<std::size_t> first_layers_of_stages(const Model& model, int stages);

// The first layer of the block that ends with this layer; nothing for a layer within a block or outside of all.
std::optional<std::size_t> block_ending_at(const std::vector<Layer>& layers, std::size_t index);

}  // namespace tandem
