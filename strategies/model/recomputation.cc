#include "strategies/model/recomputation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

namespace tandem {
namespace {

// The layers of one block: [begin, end).
struct BlockRange {
  std::size_t begin = 0, end = 0;
};

std::vector<BlockRange> blocks_in(std::span<const Layer> layers) {
  std::vector<BlockRange> blocks;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (!layers[i].block) continue;
    if (i == 0 || layers[i - 1].block != layers[i].block) blocks.push_back({i, i});
    blocks.back().end = i + 1;
  }
  return blocks;
}

bool has_any(const Layer& layer, std::initializer_list<Pointwise> operations) {
  return std::ranges::any_of(layer.then, [&](Pointwise one) { return std::ranges::count(operations, one) > 0; });
}

// Everything of these layers is computed again, and the last one's output is kept.
void mark_run(std::span<Layer> layers) {
  for (Layer& layer : layers) layer.again = Layer::Again::everything;
  if (!layers.empty()) layers.back().again = Layer::Again::everything_but_output;
}

bool mark_operations(std::span<Layer> block, const std::function<bool(const Layer&)>& is_meant) {
  bool any = false;
  for (Layer& layer : block) {
    if (!is_meant(layer)) continue;
    any = true;
    if (layer.again == Layer::Again::nothing) layer.again = Layer::Again::operations;
  }
  return any;
}

// A decoder's block may have two of them.
bool mark_attention(std::span<Layer> block) {
  bool any = false;
  for (auto made = block.begin(); made != block.end(); ++made) {
    if (made->scores != Layer::Scores::made) continue;
    const auto read = std::ranges::find(made, block.end(), Layer::Scores::read, &Layer::scores);
    if (read == block.end()) continue;
    mark_run({made, read + 1});
    any = true;
  }
  return any;
}

// What follows the last attention and its output's product, where that has experts or has none.
bool mark_rest(std::span<Layer> block, bool with_experts) {
  std::size_t first = 0;
  for (std::size_t i = 0; i < block.size(); ++i) {
    if (block[i].scores == Layer::Scores::read) first = i + 2;
  }
  if (first == 0 || first >= block.size()) return false;
  const std::span rest = block.subspan(first);
  if (std::ranges::any_of(rest, has_experts) != with_experts) return false;
  mark_run(rest);
  return true;
}

// The second products of multi-head latent attention, which read what others have projected down.
bool mark_latent(std::span<Layer> block) {
  const auto is_down = [](const Layer& layer) { return layer.name.ends_with(".key_value_down"); };
  const auto down = std::ranges::find_if(block, is_down);
  const auto made = std::ranges::find(block, Layer::Scores::made, &Layer::scores);
  if (down == block.end() || made < down) return false;
  for (auto layer = down + 1; layer != made; ++layer) layer->again = Layer::Again::everything;
  return true;
}

struct Module {
  std::string_view name;
  bool (*mark)(std::span<Layer> block);
  std::string_view lacks;  // what a block without it lacks
};

constexpr std::array kModules{
    Module{"core_attn", mark_attention, "attention"},
    Module{"mlp", [](std::span<Layer> block) { return mark_rest(block, false); },
           "layers without experts after attention"},
    Module{"moe", [](std::span<Layer> block) { return mark_rest(block, true); }, "experts after attention"},
    Module{"act",
           [](std::span<Layer> block) {
             return mark_operations(block,
                                    [](const Layer& layer) { return has_activation(layer) && !has_experts(layer); });
           },
           "activations"},
    Module{"moe_act",
           [](std::span<Layer> block) {
             return mark_operations(block,
                                    [](const Layer& layer) { return has_activation(layer) && has_experts(layer); });
           },
           "activations of experts"},
    Module{"layernorm",
           [](std::span<Layer> block) {
             return mark_operations(block, [](const Layer& layer) {
               return has_any(layer, {Pointwise::layer_norm, Pointwise::rms_norm});
             });
           },
           "norms"},
    Module{"mla_up_proj", mark_latent, "multi-head latent attention"},
};

}  // namespace

Recomputation::Recomputation(std::span<const Layer> layers, const RecomputedBlocks& blocks)
    : before_(layers.size()), again_(layers.size(), Layer::Again::nothing), first_(layers.size()) {
  for (std::size_t i = 0; i < layers.size(); ++i) first_[i] = i;
  if (blocks.any) {
    add_blocks(layers, blocks);
  } else {
    add_layers(layers);
  }
}

void Recomputation::add_blocks(std::span<const Layer> layers, const RecomputedBlocks& blocks) {
  const std::vector<BlockRange> all = blocks_in(layers);
  const std::size_t count =
      blocks.first > 0 ? std::min(all.size(), static_cast<std::size_t>(blocks.first)) : all.size();
  const auto together = static_cast<std::size_t>(blocks.together), every = static_cast<std::size_t>(blocks.every);
  for (std::size_t first = 0; first < count; first += together * every) {
    const std::size_t begin = all[first].begin, end = all[std::min(first + together, count) - 1].end;
    for (std::size_t i = begin; i < end; ++i) {
      again_[i] = i + 1 == end ? Layer::Again::everything_but_output : Layer::Again::everything;
      first_[i] = begin;
      before_[end - 1].push_back({.layer = i});
    }
  }
}

// A run ends where nothing is done again, with a layer whose output is kept, and with its block.
void Recomputation::add_layers(std::span<const Layer> layers) {
  std::size_t begin = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    again_[i] = layers[i].again;
    const bool ends = i + 1 == layers.size() || layers[i + 1].again == Layer::Again::nothing ||
                      layers[i + 1].block != layers[i].block || layers[i].again == Layer::Again::everything_but_output;
    if (layers[i].again == Layer::Again::nothing) begin = i + 1;
    if (layers[i].again == Layer::Again::nothing || !ends) continue;
    for (std::size_t j = begin; j <= i; ++j) {
      first_[j] = begin;
      const bool has_product =
          again_[j] == Layer::Again::everything || again_[j] == Layer::Again::everything_but_output;
      before_[i].push_back({.layer = j, .with_product = has_product});
    }
    begin = i + 1;
  }
}

std::span<const std::string_view> recomputed_modules() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const Module& module : kModules) all.push_back(module.name);
    return all;
  }();
  return names;
}

std::optional<std::string> recompute_module(std::string_view module, Model& model) {
  const auto found = std::ranges::find(kModules, module, &Module::name);
  if (found == kModules.end()) return fmt::format("there is no module '{}'", module);
  bool any = false;
  for (const auto& [begin, end] : blocks_in(model.layers)) {
    any = found->mark(std::span(model.layers).subspan(begin, end - begin)) || any;
  }
  if (any) return std::nullopt;
  return fmt::format("the groups that repeat in model '{}' have no {}", model.name, found->lacks);
}

bool recompute_layer(std::string_view name, Model& model) {
  const auto has_name = [name](const Layer& layer) {
    const std::string_view all = layer.name;
    return all.ends_with(name) && all.size() > name.size() && all[all.size() - name.size() - 1] == '.';
  };
  bool any = false;
  for (Layer& layer : model.layers) {
    if (!layer.block || !has_name(layer)) continue;
    any = true;
    if (layer.again != Layer::Again::everything) layer.again = Layer::Again::everything_but_output;
  }
  return any;
}

void join_recomputed_layers(Model& model) {
  const auto is_whole = [](const Layer& layer) {
    return layer.again == Layer::Again::everything || layer.again == Layer::Again::everything_but_output;
  };
  for (std::size_t i = 0; i + 1 < model.layers.size(); ++i) {
    Layer& layer = model.layers[i];
    const Layer& next = model.layers[i + 1];
    if (is_whole(layer) && is_whole(next) && layer.block == next.block) layer.again = Layer::Again::everything;
  }
}

bool has_recomputed_layers(const Model& model) {
  return std::ranges::any_of(model.layers, [](const Layer& layer) { return layer.again != Layer::Again::nothing; });
}

void recompute_operations(Model& model) {
  for (const auto& [begin, end] : blocks_in(model.layers)) {
    int products = 0;
    for (std::size_t i = begin; i < end; ++i) {
      Layer& layer = model.layers[i];
      const bool is_product = layer.gemm && !layer.gemm->batched && layer.gemm->experts == 1;
      if (is_product) ++products;
      const bool is_lost = !layer.gemm || (is_product && products % 2 == 0);
      layer.again = is_lost ? Layer::Again::everything : Layer::Again::all_but_product;
    }
  }
}

}  // namespace tandem
