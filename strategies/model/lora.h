// Low-rank adaptation (LoRA: Hu and others, arXiv:2106.09685): the parameters of a model are frozen, and beside the
// weights W of some dense layers two small matrices learn, so that a layer computes x W + x A B.
//
// Tensor-parallel devices divide B of layers that are split by columns and A of layers that are split by rows; the
// other matrix of each pair is whole on every device, and the devices sum its gradients.
//
// Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "strategies/model/model.h"

namespace tandem {

// Freezes all parameters of a layer or a model. Adapters are added by add_adapters().
void freeze(Layer& layer);
void freeze(Model& model);
// Gives the layers with this name, in every block or outside of blocks, an adapter. Several names are neighbours that
// read the same input and have one A together, as where a framework joins query, key and value in one product. Returns
// why that is impossible, for messages, or nothing.
std::optional<std::string> add_adapters(std::span<const std::string> names, std::int64_t rank, Model& model);

// Returns the product of the input with A, or that of its result with B, as a layer of its own. `row_parts`: devices
// that divide the rows of the result.
Layer down_adapter(const Layer& layer);
Layer up_adapter(const Layer& layer, int row_parts = 1);

// Returns the parameters of an adapter in the order of Layer::tensors: the matrix that every tensor-parallel device has
// comes last.
std::vector<std::int64_t> adapter_tensors(const Layer& layer);
// Returns the parameters of a device's part of a layer whose gradients the tensor-parallel devices sum because each of
// them knows a part of the sum. They are the last ones of the layer.
std::int64_t summed_adapter_parameters(const Layer& part, bool divides_rows);

// Returns the multiply-accumulates of both passes over one example: the backward pass has two products for each one of
// the forward pass, and one for a frozen one.
double training_macs(const Model& model);

// Returns whether something learns in layer number `index` or before it, so that gradients are needed there. In a model
// that is not frozen all layers count.
bool learns_until(std::span<const Layer> layers, std::size_t index);

}  // namespace tandem
