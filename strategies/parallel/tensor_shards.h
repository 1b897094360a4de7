// Divides linear layers among tensor-parallel devices (Megatron-LM: Shoeybi and others, arXiv:1909.08053). Pure
// functions.
//
// Layers alternate: one is divided by the columns of its weights, the next one by the rows, so that each device already
// has the part of the first one's output that the second one needs. The last layer is always divided by rows, which
// gives every device the whole output. With an odd number of layers the first one is divided by rows as well, and each
// device takes its features of the input.
#pragma once

#include "strategies/parallel/trainer.h"

namespace tandem {

enum class Split : std::uint8_t {
  columns,  // whole input, part of the output; the backward pass sums the input's gradients over the devices
  rows,     // part of the input, whole output; the forward pass sums the outputs over the devices
};

struct LayerShard {
  int layer = 0;
  Split split = Split::rows;
  Range inputs{}, outputs{};  // this device's part of the layer's features

  LinearShape shape() const { return {.inputs = inputs.count, .outputs = outputs.count}; }
};

// The shard of device `part` of `parts`. Parts may differ by one feature; ValueError for a layer with fewer features
// than devices.
LayerShard layer_shard(const LinearStack& stack, int layer, int parts, int part);

// The initial values of the shard's parameters, flat: weights, then bias.
LinearStack::Values initial_values(const LinearStack& stack, const LayerShard& shard);

}  // namespace tandem
