// How devices that divide the tokens of sequences divide the products of attention.
#include <fmt/format.h>

#include <algorithm>

#include "strategies/parallel/layout/layer_division.h"
#include "strategies/parallel/layout/nearest_sizes.h"

namespace tandem {

namespace {

// A device that has fewer heads than share keys and values has one.
std::int64_t key_heads(const Layer& layer) {
  return std::max<std::int64_t>(1, layer.gemm->count / layer.gemm->sharing);
}

// Without a role, the longer side is that of tokens.
bool reads_scores(const Layer& layer) {
  if (layer.scores != Layer::Scores::none) return layer.scores == Layer::Scores::read;
  return layer.gemm->depth > layer.gemm->columns;
}

}  // namespace

std::int64_t key_elements(const Layer& layer) {
  if (!layer.gemm || !layer.gemm->batched) return 0;
  return key_heads(layer) * layer.gemm->depth * layer.gemm->columns;
}

std::int64_t passed_key_elements(const Layer& part, const LayerDivision& division) {
  const std::int64_t seen = key_elements(part);
  if (seen == 0 || division.context_exchange == ContextExchange::all_gather || part.gemm->attended == 1) return seen;
  const std::int64_t keys = reads_scores(part) ? part.gemm->depth : part.gemm->columns;
  const bool has_all_tokens = division.context_exchange == ContextExchange::all_to_all;  // of some of the heads
  return seen / keys * std::max(keys, part.gemm->rows * (has_all_tokens ? 1 : division.context));
}

// Heads that share keys and values stay together, so that these are divided as well.
std::optional<std::string> heads_problem(const Model& model, int devices, int tensor) {
  for (const Layer& layer : model.layers) {
    if (key_elements(layer) == 0) continue;
    const std::int64_t parts = layer.divided_by() == Layer::Split::count ? tensor : 1;
    const std::int64_t heads = std::max<std::int64_t>(1, key_heads(layer) / parts);
    if (heads % devices == 0) continue;
    return fmt::format(
        "all_to_all divides heads: {} devices do not divide the {} heads of keys and values that a device has in layer "
        "'{}'; {}; ring and all_gather divide tokens only",
        devices, heads, layer.name, nearest_divisors(heads, devices));
  }
  return std::nullopt;
}

Layer layer_of_heads(const Layer& layer, int parts) {
  Layer part = layer;
  part.gemm->count /= parts;
  return part;
}

Layer layer_of_piece(const Layer& layer, int parts) {
  Layer piece = layer;
  std::int64_t& keys = reads_scores(layer) ? piece.gemm->depth : piece.gemm->columns;
  keys = (keys + parts - 1) / parts;
  if (piece.gemm->input_elements > 0) piece.gemm->input_elements = piece.gemm->rows * piece.gemm->depth;
  return piece;
}

}  // namespace tandem
