#include "scenarios/workloads/activations.h"

#include <algorithm>
#include <set>
#include <utility>

#include "scenarios/scenario/scenario.h"
#include "strategies/model/offload.h"
#include "strategies/parallel/layout/layer_division.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

constexpr std::int64_t kMaskBytes = 1;     // of an element that dropout keeps or drops
constexpr std::int64_t kIndexBytes = 8;    // of a row that an embedding looks up
constexpr std::int64_t kSoftmaxBytes = 4;  // of an output of a loss that is not fused, whose softmax is kept in f32

// Returns the number of elements that a layer reads for one example.
std::int64_t input_elements_of(const Layer& layer) {
  if (layer.embedding) return 0;
  if (!layer.gemm) return layer.routing ? layer.elementwise->elements : layer.output_elements();
  const Layer::Gemm& gemm = *layer.gemm;
  const std::int64_t left = gemm.input_elements > 0 ? gemm.input_elements : gemm.rows * gemm.depth;
  return gemm.batched ? gemm.count * left + gemm.count / gemm.sharing * gemm.depth * gemm.columns : gemm.count * left;
}

bool ends_in_loss(const Layer& layer) {
  return std::count(layer.then.begin(), layer.then.end(), Pointwise::cross_entropy) > 0;
}

std::int64_t bytes_kept_by(Pointwise operation, const ActivationSettings& settings) {
  const auto element_bytes = static_cast<std::int64_t>(size_of(settings.dtype));
  switch (operation) {
    case Pointwise::gelu:
    case Pointwise::softmax:
    case Pointwise::layer_norm:
    case Pointwise::batch_norm:
    case Pointwise::rms_norm:
      return element_bytes;
    case Pointwise::gate:
      return 2 * element_bytes;
    case Pointwise::dropout:
      return kMaskBytes;
    case Pointwise::cross_entropy:
      return settings.fuses_loss ? element_bytes : kSoftmaxBytes;
    case Pointwise::bias:
    case Pointwise::relu:  // the next product keeps its output
    case Pointwise::residual:
    case Pointwise::scale:
    case Pointwise::mask:
    case Pointwise::transpose:
    case Pointwise::rotary:
      return 0;
  }
  TANDEM_UNREACHABLE("an operation");
}

std::int64_t element_bytes_of(const ActivationSettings& settings) {
  return static_cast<std::int64_t>(size_of(settings.dtype));
}

int row_parts_of(const Layer& layer, const ActivationSettings& settings) {
  return is_of_experts(layer) ? settings.expert_row_parts : settings.row_parts;
}

// If rows are divided, each device keeps only its rows of the inputs of layers split by columns, and of the operations
// after sums. Layers that are not split are given as the device's rows already (rows_of_whole_layer()).
std::int64_t kept_input_elements(const Layer& layer, const ActivationSettings& settings) {
  if (const std::int64_t keys = key_elements(layer); keys > 0) {
    return input_elements_of(layer) - keys + keys / settings.key_parts;
  }
  const bool is_gathered = layer.divided_by() == Layer::Split::columns;
  return input_elements_of(layer) / (is_gathered ? row_parts_of(layer, settings) : 1);
}
std::int64_t kept_output_elements(const Layer& layer, const ActivationSettings& settings) {
  return layer.output_elements() / (sums_output(layer) ? row_parts_of(layer, settings) : 1);
}

std::int64_t kept_by_operations(const Layer& layer, const ActivationSettings& settings) {
  std::int64_t bytes = 0;
  for (const Pointwise operation : layer.then) {
    if (layer.has_frozen_norm && operation == Pointwise::batch_norm) continue;  // the result says what ReLU hid
    bytes += kept_output_elements(layer, settings) * bytes_kept_by(operation, settings);
  }
  return bytes;
}

// Returns the bytes of quantised elements with their scales: of a byte for every 16 or 32, of four for every 128. Those
// of tensors and rows are too few to count.
std::int64_t quantised_bytes(std::int64_t elements, const ActivationSettings& settings) {
  switch (settings.quantised) {
    case Quantised::none:
    case Quantised::fp8:
      return elements + (settings.recipe == ScalingRecipe::blockwise ? elements * 4 / 128 : 0);
    case Quantised::mxfp8:
      return elements + elements / 32;
    case Quantised::nvfp4:
      return elements / 2 + elements / 16;
  }
  TANDEM_UNREACHABLE("a type of operands");
}

// Returns the bytes that an adapter keeps for its gradients: what the layer reads, unless an adapter of a neighbour
// that reads the same keeps it, and the result of its first product.
std::int64_t kept_by_adapter(std::span<const Layer> layers, std::size_t index, const ActivationSettings& settings) {
  const Layer& layer = layers[index];
  if (layer.adapter_rank == 0) return 0;
  std::int64_t elements = layer.shares_adapter ? 0 : layer.gemm->count * layer.gemm->rows * layer.adapter_rank;
  bool is_kept = false;
  for (std::size_t i = index; shares_input(layers, i); --i) is_kept = is_kept || layers[i - 1].adapter_rank > 0;
  if (!is_kept) elements += kept_input_elements(layer, settings);
  return elements * element_bytes_of(settings);
}

// Returns the bytes of what a layer reads for one example, and of what its attention keeps of keys and values.
std::int64_t kept_input(std::span<const Layer> layers, std::size_t index, const ActivationSettings& settings) {
  const Layer& layer = layers[index];
  const std::int64_t element_bytes = element_bytes_of(settings);
  if (!settings.keeps_scores && layer.scores == Layer::Scores::read) {
    return key_elements(layer) / settings.key_parts * element_bytes;  // without the scores
  }
  if (layer.is_frozen && layer.gemm && !layer.gemm->batched) return kept_by_adapter(layers, index, settings);
  if (!layer.gemm || shares_input(layers, index)) return 0;
  const bool is_quantised = settings.quantised != Quantised::none && layer.can_be_quantised();
  const std::int64_t elements = kept_input_elements(layer, settings);
  return is_quantised ? quantised_bytes(elements, settings) : elements * element_bytes;
}

// Returns the bytes that a layer keeps for one example apart from its input. What surrounds experts only moves rows:
// the weights of sums are factors of the experts' activations.
std::int64_t kept_beside_input(const Layer& layer, const ActivationSettings& settings) {
  if (!settings.keeps_scores && layer.scores != Layer::Scores::none) return 0;
  std::int64_t bytes = kept_by_operations(layer, settings);
  if (layer.elementwise && !layer.routing && layer.elementwise->backward_passes > 0) {
    bytes += layer.elementwise->elements * element_bytes_of(settings);
  }
  return bytes + (layer.embedding ? layer.embedding->rows * kIndexBytes : 0);
}

std::int64_t kept_by(std::span<const Layer> layers, std::size_t index, const ActivationSettings& settings) {
  return kept_input(layers, index, settings) + kept_beside_input(layers[index], settings);
}

// Attention that is computed again finds its values, which the layers before its scores have made.
bool has_values_of_others(std::span<const Layer> layers, std::size_t index, const Recomputation& recomputation) {
  return layers[index].scores == Layer::Scores::read && index >= 2 && recomputation.keeps_output(index - 2);
}

// Returns the bytes that a layer keeps for one example where some layers are computed again.
std::int64_t kept_of(std::span<const Layer> layers, std::size_t index, const Recomputation& recomputation,
                     const ActivationSettings& settings) {
  const Layer& layer = layers[index];
  const std::int64_t element_bytes = element_bytes_of(settings);
  const bool has_input = index == 0 || recomputation.keeps_output(index - 1);
  const std::int64_t output = kept_output_elements(layer, settings) * element_bytes;
  switch (recomputation.again(index)) {
    case Layer::Again::nothing:
      return (has_input ? kept_input(layers, index, settings) : 0) + kept_beside_input(layer, settings);
    case Layer::Again::operations:
      return (has_input ? kept_input(layers, index, settings) : 0) +
             std::max(kept_beside_input(layer, settings), output);
    case Layer::Again::all_but_product: {
      const bool begins = index == 0 || layers[index - 1].block != layer.block;
      const bool is_inside_attention = !settings.keeps_scores && layer.scores == Layer::Scores::made;
      return (begins ? kept_input_elements(layer, settings) * element_bytes : 0) + (is_inside_attention ? 0 : output);
    }
    case Layer::Again::everything:
    case Layer::Again::everything_but_output:
      if (has_values_of_others(layers, index, recomputation)) {
        return key_elements(layer) / settings.key_parts * element_bytes;
      }
      return has_input && !shares_input(layers, index) ? kept_input_elements(layer, settings) * element_bytes : 0;
  }
  TANDEM_UNREACHABLE("what of a layer is computed again");
}

std::int64_t again_bytes(std::span<const Layer> layers, const Again& again, const ActivationSettings& settings) {
  return again.with_product ? kept_by(layers, again.layer, settings)
                            : kept_output_elements(layers[again.layer], settings) * element_bytes_of(settings);
}

// Returns the elements of a layer's output that exist: without scores if none are kept, and none of a fused loss.
std::int64_t made_elements(const Layer& layer, const ActivationSettings& settings) {
  if (settings.fuses_loss && ends_in_loss(layer)) return 0;
  const bool has_scores = settings.keeps_scores || layer.scores != Layer::Scores::made;
  return has_scores ? layer.output_elements() : 0;
}

std::int64_t read_elements(const Layer& layer, const ActivationSettings& settings) {
  const bool reads_scores = !settings.keeps_scores && layer.scores == Layer::Scores::read;
  return input_elements_of(layer) - (reads_scores ? layer.gemm->count * layer.gemm->rows * layer.gemm->depth : 0);
}

// Heads that are exchanged go from one matrix to another.
std::int64_t copies_of(const Layer& layer, const ActivationSettings& settings) {
  return settings.exchanges_heads && key_elements(layer) > 0 ? 2 : 1;
}

// Returns the bytes of a layer's input and output for one example. Pieces of keys and values that come in rounds stay
// until the last of them, as do the outputs of the rounds (`p2p_comm_buffers` and `out_per_step` in Transformer
// Engine's context_parallel.py).
std::int64_t layer_bytes(const Layer& layer, const ActivationSettings& settings) {
  const bool has_outputs_of_rounds = !settings.keeps_scores && layer.scores == Layer::Scores::read;
  const std::int64_t made = made_elements(layer, settings) * (has_outputs_of_rounds ? settings.key_rounds : 1);
  return copies_of(layer, settings) * (read_elements(layer, settings) + made) * element_bytes_of(settings);
}

// Returns the same with their gradients. In the backward pass there are two pieces at a time: the one in use, and the
// one that comes next.
std::int64_t gradient_bytes(const Layer& layer, const ActivationSettings& settings) {
  constexpr std::int64_t kF32Bytes = 4;
  const std::int64_t element_bytes = element_bytes_of(settings);
  const std::int64_t of_output = ends_in_loss(layer) ? std::max(kF32Bytes, element_bytes) : element_bytes;
  const std::int64_t keys = settings.key_rounds > 1 ? key_elements(layer) : 0;
  const std::int64_t read = read_elements(layer, settings) - keys + 2 * keys / settings.key_rounds;
  return 2 * copies_of(layer, settings) * (read * element_bytes + made_elements(layer, settings) * of_output);
}

// Returns the bytes that gradients of a layer's weights read: the input of its product, and the gradients of what that
// made. Norms have theirs with the gradients of inputs.
std::int64_t left_of(std::span<const Layer> layers, std::size_t index, const ActivationSettings& settings) {
  const Layer& layer = layers[index];
  const bool is_attention = layer.gemm && layer.gemm->batched;
  if (layer.parameters() == 0 || is_attention || (!layer.gemm && !layer.embedding)) return 0;
  const std::int64_t made = layer.output_elements();
  const bool is_quantised = settings.quantised != Quantised::none && layer.can_be_quantised() && !layer.is_frozen;
  const std::int64_t gradient = is_quantised ? quantised_bytes(made, settings) : made * element_bytes_of(settings);
  const std::int64_t indices = layer.embedding ? layer.embedding->rows * kIndexBytes : 0;
  return kept_input(layers, index, settings) + indices + gradient;
}

bool has_weights(const Layer& layer) {
  return layer.gemm && !layer.gemm->batched && !layer.convolution;
}

}  // namespace

ActivationSettings activation_settings(const LayersSettings& layers, std::int64_t examples) {
  return {.examples = examples,
          .dtype = layers.storage(),
          .recomputed = layers.recomputed,
          .offloaded = layers.offload.blocks,
          .keeps_scores = layers.stack.keeps_scores(),
          .quantised = layers.learning ? Quantised::none : layers.quantised,  // values are rounded, and kept in dtype
          .recipe = layers.recipe,
          .fuses_loss = layers.stack.loss == Loss::fused};
}

std::int64_t activation_bytes(std::span<const Layer> layers, const ActivationSettings& settings) {
  const Recomputation recomputation(layers, settings.recomputed);
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) bytes += kept_of(layers, i, recomputation, settings);
  return settings.examples * bytes;
}

PassMemory pass_memory(std::span<const Layer> layers, const ActivationSettings& settings) {
  const Recomputation recomputation(layers, settings.recomputed);
  PassMemory pass;
  std::int64_t before = 0;  // what is left of an offloaded segment until the end of the next one
  for (const OffloadSegment& segment : offload_segments(layers, settings.offloaded)) {
    std::int64_t here = 0;
    for (std::size_t i = segment.first; i < segment.end; ++i) {
      (segment.is_offloaded ? here : pass.kept) += settings.examples * kept_of(layers, i, recomputation, settings);
      pass.forward.push_back({pass.kept + before + here, settings.examples * layer_bytes(layers[i], settings)});
    }
    before = here;
  }
  std::vector<std::int64_t> again(layers.size(), 0);
  std::int64_t now = 0;  // that were computed again and are still in use
  pass.backward.resize(layers.size());
  for (std::size_t i = layers.size(); i-- > 0;) {
    for (const Again& one : recomputation.before(i)) {
      const std::int64_t bytes = settings.examples * again_bytes(layers, one, settings);
      again[one.layer] += bytes;
      now += bytes;
    }
    pass.backward[i] = {pass.forward[i].kept + now, settings.examples * gradient_bytes(layers[i], settings)};
    now -= std::exchange(again[i], 0);
  }
  pass.left.resize(layers.size() + 1);
  for (std::size_t i = layers.size(); i-- > 0;) {
    pass.left[i] = pass.left[i + 1] + settings.examples * left_of(layers, i, settings);
  }
  return pass;
}

EvaluationMemory evaluation_memory(std::span<const Layer> layers, const ActivationSettings& settings) {
  EvaluationMemory most;
  std::int64_t added = 0;  // by the residual connections of one example, at most
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const std::int64_t bytes = layer_bytes(layers[i], settings);
    if (bytes > most.bytes) most = {.layer = i, .bytes = bytes};
    if (std::ranges::count(layers[i].then, Pointwise::residual) > 0) {
      added = std::max(added, kept_output_elements(layers[i], settings) * element_bytes_of(settings));
    }
  }
  most.bytes = settings.examples * (most.bytes + added);
  return most;
}

std::int64_t cached_logits(std::span<const Layer> layers, const ActivationSettings& settings) {
  const std::int64_t element_bytes = element_bytes_of(settings);
  if (element_bytes > 2) return 0;
  std::int64_t most = 0;
  for (const Layer& layer : layers) {
    if (ends_in_loss(layer)) most = std::max(most, made_elements(layer, settings) * element_bytes);
  }
  return settings.examples * most;
}

std::int64_t unused_gradients(std::span<const Layer> layers) {
  std::set<std::pair<std::int64_t, std::int64_t>> shapes;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (!has_weights(layers[i]) || layers[i].is_frozen || shares_input(layers, i)) continue;
    std::int64_t columns = layers[i].gemm->columns;
    for (std::size_t next = i + 1; next < layers.size() && shares_input(layers, next); ++next) {
      columns += layers[next].gemm->columns;
    }
    shapes.emplace(layers[i].gemm->depth, columns);
  }
  std::int64_t elements = 0;
  for (const auto& [depth, columns] : shapes) elements += depth * columns;
  return elements;
}

}  // namespace tandem
