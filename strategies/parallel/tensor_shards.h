// How tensor-parallel devices divide linear layers (Megatron-LM: Shoeybi and others, arXiv:1909.08053). Pure functions.
//
// Layers alternate: one is divided by the columns of its weights, the next one by the rows, so that what the first
// leaves on a device is what the second needs there. The last layer is always divided by rows: its output is whole on
// every device. With an odd number of layers the first one is divided by rows too; each device takes its features of
// the input.
#pragma once

#include "strategies/parallel/trainer.h"

namespace tandem {

enum class Split : std::uint8_t {
  columns,  // whole input, part of the output. Backward: the input's gradients are summed over the devices
  rows,     // part of the input, whole output. Forward: the outputs are summed over the devices
};

struct LayerShard {
  int layer = 0;
  Split split = Split::rows;
  Range inputs{}, outputs{};  // of the layer's features: what this device has of them

  LinearShape shape() const { return {.inputs = inputs.count, .outputs = outputs.count}; }
};

// Device `part` of `parts`. Sizes need not divide; ValueError for a layer with fewer features than devices.
LayerShard layer_shard(const LinearStack& stack, int layer, int parts, int part);

// The initial values of the shard's parameters, flat: weights, then bias.
LinearStack::Values initial_values(const LinearStack& stack, const LayerShard& shard);

}  // namespace tandem
