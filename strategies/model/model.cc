#include "strategies/model/model.h"

#include <algorithm>
#include <numeric>

namespace tandem {
namespace {

template <typename Of>
std::int64_t total(const std::vector<Layer>& layers, Of of) {
  std::int64_t sum = 0;
  for (const Layer& layer : layers) sum += of(layer);
  return sum;
}

}  // namespace

Layer::Gemm Layer::Convolution::as_gemm() const {
  const auto divided = [this](std::int64_t side) { return (side + stride - 1) / stride; };
  const std::int64_t depth = std::max<std::int64_t>(image_depth, 1), window = image_depth > 0 ? kernel : 1;
  Gemm product;
  product.rows = divided(height) * divided(width) * divided(depth);
  product.columns = out_channels;
  product.depth = in_channels / groups * kernel * kernel * window;
  product.input_elements = height * width * depth * in_channels;
  return product;
}

std::int64_t Layer::parameters() const {
  return std::accumulate(tensors.begin(), tensors.end(), std::int64_t{0});
}

std::int64_t Layer::frozen_parameters() const {
  return std::accumulate(frozen.begin(), frozen.end(), std::int64_t{0});
}

bool Layer::has_weights() const {
  const std::int64_t own = is_frozen ? frozen_parameters() : parameters();
  return gemm && own >= gemm->experts * gemm->depth * gemm->columns;
}

bool Layer::can_be_quantised() const {
  const bool is_dense = has_weights() && !convolution && !gemm->batched;
  return is_dense && block && std::count(then.begin(), then.end(), Pointwise::softmax) == 0;
}

std::int64_t Layer::weights() const {
  return has_weights() ? gemm->experts * gemm->depth * gemm->columns : 0;
}

std::int64_t Layer::forward_macs() const {
  return gemm ? gemm->rows * gemm->columns * gemm->depth * gemm->count : 0;
}

std::int64_t Layer::output_elements() const {
  if (gemm) return gemm->rows * gemm->columns * gemm->count;
  if (routing && routing->way == Routing::Way::combine) return routing->rows * routing->columns;
  return embedding ? embedding->rows * embedding->columns : elementwise->elements;
}

bool has_experts(const Layer& layer) {
  return layer.gemm && layer.gemm->experts > 1;
}

bool is_of_experts(const Layer& layer) {
  return layer.gemm && layer.gemm->all_experts > 1;
}

bool has_activation(const Layer& layer) {
  return std::ranges::any_of(layer.then, [](Pointwise operation) {
    return operation == Pointwise::gate || operation == Pointwise::gelu || operation == Pointwise::relu;
  });
}

bool shares_input(std::span<const Layer> layers, std::size_t index) {
  return index > 0 && layers[index].split == Layer::Split::columns &&
         layers[index - 1].split == Layer::Split::columns && layers[index - 1].gemm->depth == layers[index].gemm->depth;
}

std::int64_t Model::parameters() const {
  return total(layers, [](const Layer& layer) { return layer.parameters(); });
}

std::int64_t Model::frozen_parameters() const {
  return total(layers, [](const Layer& layer) { return layer.frozen_parameters(); });
}

std::int64_t Model::forward_macs() const {
  return total(layers, [](const Layer& layer) { return layer.forward_macs(); });
}

std::int64_t Model::output_elements() const {
  return total(layers, [](const Layer& layer) { return layer.output_elements(); });
}

bool Model::depends_on_stack() const {
  return std::any_of(layers.begin(), layers.end(), [](const Layer& layer) { return !layer.then.empty(); });
}

bool Model::has_operation(Pointwise operation) const {
  const auto has = [operation](const Layer& layer) { return std::ranges::count(layer.then, operation) > 0; };
  return std::ranges::any_of(layers, has);
}

}  // namespace tandem
