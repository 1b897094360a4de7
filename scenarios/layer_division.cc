#include "scenarios/layer_division.h"

#include <fmt/format.h>

#include <algorithm>

#include "strategies/parallel/linear.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

using LayerSplit = Layer::Split;

// The first layer of each copy of a group, and the number of layers before and after the copies.
struct Blocks {
  std::vector<std::size_t> first{};
  std::size_t end = 0;  // of the last one
  int groups = 0;
};

Blocks blocks_of(const Model& model) {
  Blocks blocks;
  std::optional<Layer::Block> before;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const std::optional<Layer::Block>& block = model.layers[i].block;
    if (block && block != before) blocks.first.push_back(i);
    if (block && (!before || before->group != block->group)) ++blocks.groups;
    if (block) blocks.end = i + 1;
    before = block;
  }
  return blocks;
}

std::optional<std::string> split_problem(const Layer& layer, int devices) {
  const auto unless_divisible = [&](std::int64_t total, const char* what) -> std::optional<std::string> {
    if (total % devices == 0) return std::nullopt;
    return fmt::format("{} tensor-parallel devices do not divide the {} {} of layer '{}'", devices, total, what,
                       layer.name);
  };
  switch (layer.split) {
    case LayerSplit::columns:
      return divides_loss(layer) ? std::nullopt : unless_divisible(layer.gemm->columns, "outputs");
    case LayerSplit::rows:
      return unless_divisible(layer.gemm->depth, "inputs");
    case LayerSplit::count:
      return unless_divisible(layer.gemm->count, "products (heads)");
    case LayerSplit::entries:
    case LayerSplit::none:
      return std::nullopt;
  }
  TANDEM_UNREACHABLE("a way to split a layer");
}

}  // namespace

std::optional<std::string> tensor_problem(const Model& model, int devices) {
  if (devices == 1) return std::nullopt;
  const auto is_split = [](const Layer& layer) { return layer.split != LayerSplit::none; };
  if (std::none_of(model.layers.begin(), model.layers.end(), is_split)) {
    return fmt::format("model '{}' does not say how its layers are split among tensor-parallel devices (`split`)",
                       model.name);
  }
  // Heads first: what else is divided follows from them.
  for (const bool heads : {true, false}) {
    for (const Layer& layer : model.layers) {
      if ((layer.split == LayerSplit::count) != heads) continue;
      if (auto problem = split_problem(layer, devices)) return problem;
    }
  }
  return std::nullopt;
}

std::optional<std::string> stage_problem(const Model& model, int stages) {
  if (stages == 1) return std::nullopt;
  const Blocks blocks = blocks_of(model);
  if (blocks.groups != 1) {
    return fmt::format("pipeline stages consist of the copies of one group that repeats; model '{}' has {} such groups",
                       model.name, blocks.groups);
  }
  if (static_cast<int>(blocks.first.size()) % stages != 0) {
    return fmt::format("{} stages do not divide the {} blocks '{}' of model '{}'", stages, blocks.first.size(),
                       model.layers[blocks.first.front()].block->group, model.name);
  }
  return std::nullopt;
}

Layer layer_part(const Layer& layer, int parts, int part) {
  Layer result = layer;
  const auto of = [&](std::int64_t total) { return part_of(total, parts, part).count; };
  switch (layer.split) {
    case LayerSplit::columns:
      result.gemm->columns = of(layer.gemm->columns);
      for (std::int64_t& tensor : result.tensors) {  // every device has a norm of the heads
        if (tensor % layer.gemm->columns == 0) tensor = tensor / layer.gemm->columns * result.gemm->columns;
      }
      break;
    case LayerSplit::rows:
      result.gemm->depth = of(layer.gemm->depth);
      result.gemm->input_elements = result.gemm->rows * result.gemm->depth;
      if (!layer.shared_weights)
        result.tensors.front() = result.gemm->experts * result.gemm->depth * result.gemm->columns;
      break;
    case LayerSplit::count:
      result.gemm->count = of(layer.gemm->count);
      break;
    case LayerSplit::entries:
      result.embedding->entries = of(layer.embedding->entries);
      result.tensors.front() = result.embedding->entries * result.embedding->columns;
      break;
    case LayerSplit::none:
      break;
  }
  return result;
}

bool sums_output(const Layer& layer) {
  return layer.split == LayerSplit::rows || layer.split == LayerSplit::entries;
}

bool sums_input_gradient(const std::vector<Layer>& layers, std::size_t index) {
  if (layers[index].split != LayerSplit::columns) return false;
  return index == 0 || layers[index - 1].split != LayerSplit::columns || divides_loss(layers[index - 1]);
}

bool divides_loss(const Layer& layer) {
  return layer.split == LayerSplit::columns &&
         std::count(layer.then.begin(), layer.then.end(), Pointwise::cross_entropy) > 0;
}

std::vector<std::size_t> first_layers_of_stages(const Model& model, int stages) {
  TANDEM_CHECK(!stage_problem(model, stages), "stages that the model's blocks do not divide into");
  std::vector<std::size_t> first{0};
  const Blocks blocks = blocks_of(model);
  for (int stage = 1; stage < stages; ++stage) {
    first.push_back(
        blocks.first[blocks.first.size() / static_cast<std::size_t>(stages) * static_cast<std::size_t>(stage)]);
  }
  first.push_back(model.layers.size());
  return first;
}

std::optional<std::size_t> block_ending_at(const std::vector<Layer>& layers, std::size_t index) {
  const std::optional<Layer::Block>& block = layers[index].block;
  if (!block || (index + 1 < layers.size() && layers[index + 1].block == block)) return std::nullopt;
  std::size_t first = index;
  while (first > 0 && layers[first - 1].block == block) --first;
  return first;
}

}  // namespace tandem
