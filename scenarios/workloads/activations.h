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
  int offloaded = 0;                      // of the first blocks, which keep all that on the host
  bool keeps_scores = true;               // of attention; false: they are computed again inside its kernels
  Quantised quantised = Quantised::none;  // inputs of such products are kept quantised
  ScalingRecipe recipe = ScalingRecipe::tensorwise;
  bool fuses_loss = false;       // gradients of the loss are written over the outputs, which are all that is kept
  int row_parts = 1;             // devices that divide the rows of what they do not split (sequence parallelism)
  int expert_row_parts = 1;      // those that gather rows for experts
  int key_parts = 1;             // devices of a sequence, each of which keeps its keys and values (context parallelism)
  int key_rounds = 1;            // of attention to which keys and values come piece by piece (ContextExchange::ring)
  bool exchanges_heads = false;  // of attention (ContextExchange::all_to_all)
};

// Returns the settings of passes over some examples, on a device of its own.
ActivationSettings activation_settings(const LayersSettings& layers, std::int64_t examples);

// Returns the bytes that one forward pass keeps.
std::int64_t activation_bytes(std::span<const Layer> layers, const ActivationSettings& settings);

// What one pass over consecutive layers holds while it works on each of them, in bytes.
struct PassMemory {
  struct Moment {
    std::int64_t kept = 0;       // for the backward pass, with what was computed again for it
    std::int64_t workspace = 0;  // the layer's input and output, backward with their gradients
  };
  std::vector<Moment> forward{}, backward{};  // by layer
  // By layer, with one more: where gradients of weights have a pass of their own, what stays for it from the gradients
  // of inputs, of the layer and those after it.
  std::vector<std::int64_t> left{};
  std::int64_t kept = 0;  // between the two passes
};

// Leaves out of a workspace what is not kept or is kept anyway. A loss that is not fused has its gradients in f32
// twice: those of the logarithms of the probabilities and, from them, those of the logits. PyTorch's cross_entropy
// makes both.
PassMemory pass_memory(std::span<const Layer> layers, const ActivationSettings& settings);

// What one forward pass holds at most of which nothing is kept for a backward pass: the input and output of a layer,
// and beside them what the layer's block adds to its result.
struct EvaluationMemory {
  std::size_t layer = 0;
  std::int64_t bytes = 0;
};
EvaluationMemory evaluation_memory(std::span<const Layer> layers, const ActivationSettings& settings);

// Returns the bytes of logits of two bytes whose loss is not fused. Once they were copied to f32 their block is free,
// too small for any of the loss's gradients, and stays with PyTorch's allocator (c10/cuda/CUDACachingAllocator.cpp).
std::int64_t cached_logits(std::span<const Layer> layers, const ActivationSettings& settings);

// Returns the elements of the gradients that layers hand over without a meaning where products have added theirs to
// those of earlier passes: one tensor for each shape of a matrix of weights, which stays from then on, as in
// Transformer Engine (get_dummy_wgrad() in transformer_engine/pytorch/module/base.py). Layers that read the same are
// one matrix.
std::int64_t unused_gradients(std::span<const Layer> layers);

}  // namespace tandem
