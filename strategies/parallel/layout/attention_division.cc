// How devices that divide the tokens of sequences divide the products of attention.
#include <fmt/format.h>

#include <algorithm>

#include "strategies/parallel/layout/layer_division.h"
#include "strategies/parallel/layout/nearest_sizes.h"

namespace tandem {

std::int64_t key_elements(const Layer& layer) {
  if (!layer.gemm || !layer.gemm->batched) return 0;
  return layer.gemm->count / layer.gemm->sharing * layer.gemm->depth * layer.gemm->columns;
}

// Heads that share keys and values stay together, so that these are divided as well.
std::optional<std::string> heads_problem(const Model& model, int devices, int tensor) {
  for (const Layer& layer : model.layers) {
    if (key_elements(layer) == 0) continue;
    const std::int64_t heads =
        layer.gemm->count / layer.gemm->sharing / (layer.divided_by() == Layer::Split::count ? tensor : 1);
    if (heads > 0 && heads % devices == 0) continue;
    return fmt::format(
        "all_to_all divides heads: {} devices do not divide the {} heads of keys and values that a device has in layer "
        "'{}'; {}; ring and all_gather divide tokens only",
        devices, heads, layer.name, nearest_divisors(std::max<std::int64_t>(1, heads), devices));
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
  const bool has_role = layer.scores != Layer::Scores::none;  // else the longer side is that of tokens
  const bool reads = has_role ? layer.scores == Layer::Scores::read : piece.gemm->depth > piece.gemm->columns;
  std::int64_t& keys = reads ? piece.gemm->depth : piece.gemm->columns;
  keys = (keys + parts - 1) / parts;
  if (piece.gemm->input_elements > 0) piece.gemm->input_elements = piece.gemm->rows * piece.gemm->depth;
  return piece;
}

}  // namespace tandem
