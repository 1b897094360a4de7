// The bytes that the forward pass of a table of layers keeps for its backward pass.
//
// It keeps the operands of products, the inputs of GELU and of norms, the outputs of softmax, and a byte for each
// element that dropout keeps or drops. For a block of a transformer these are the figures of Korthikanti and others,
// "Reducing Activation Recomputation in Large Transformer Models" (arXiv:2205.05198), section 4.1 and, on
// tensor-parallel devices, equations 2 and, with sequence parallelism, 4.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "strategies/model/model.h"
#include "strategies/model/training_settings.h"
#include "topologies/base/dtype.h"

namespace tandem {

struct LayersSettings;

struct ActivationSettings {
  std::int64_t examples = 1;
  DType dtype = DType::f32;               // of activations
  RecomputedBlocks recomputed{};          // keep their inputs only
  bool keeps_scores = true;               // of attention; false: they are computed again inside its kernels
  Quantised quantised = Quantised::none;  // inputs of such products are kept quantised
  bool fuses_loss = false;  // gradients of the loss are written over the outputs, which are all that is kept
  int row_parts = 1;        // devices that divide the rows of what they do not split (sequence parallelism)
  int key_parts = 1;        // devices of a sequence, each of which keeps its keys and values (context parallelism)
};

// Returns the settings of passes over some examples, on a device of its own.
ActivationSettings activation_settings(const LayersSettings& layers, std::int64_t examples);

// Returns the bytes that one forward pass keeps.
std::int64_t activation_bytes(std::span<const Layer> layers, const ActivationSettings& settings);

// Returns the most bytes that layers hold while they are computed again before their backward pass.
std::int64_t recomputed_bytes(std::span<const Layer> layers, const ActivationSettings& settings);

// Returns the bytes of the largest layer's input and output together, without what is not kept or is kept anyway.
std::int64_t largest_layer_bytes(std::span<const Layer> layers, const ActivationSettings& settings);

}  // namespace tandem
