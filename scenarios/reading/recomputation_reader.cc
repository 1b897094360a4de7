#include "scenarios/reading/recomputation_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <string>

#include "strategies/model/recomputation.h"

namespace tandem {
namespace {

constexpr int kMostRecomputed = 10'000;

// Marks the parts of blocks that are computed again by themselves.
void read_recomputed_layers(const YamlReader& modules, const YamlReader& names, Model& model) {
  YamlReader::Words<std::string_view> words;
  for (const std::string_view name : recomputed_modules()) words.emplace_back(name, name);
  for (const YamlReader& module : modules.list()) {
    const std::string_view name = module.one_of<std::string_view>(words, "");
    if (name.empty() || model.layers.empty()) continue;
    if (const auto problem = recompute_module(name, model)) module.error(*problem);
  }
  for (const YamlReader& name : names.list()) {
    const std::string text = name.text();
    if (text.empty() || model.layers.empty() || recompute_layer(text, model)) continue;
    std::set<std::string> known;
    for (const Layer& layer : model.layers) {
      if (layer.block) known.insert(layer.name.substr(layer.name.rfind('.') + 1));
    }
    name.error(fmt::format("model '{}' has no layer of this name in groups that repeat; they have {}", model.name,
                           fmt::join(known, ", ")));
  }
  join_recomputed_layers(model);
}

}  // namespace

void read_recomputation(const YamlReader& value, LayersSettings& layers) {
  if (!value) return;
  const std::vector<Layer>& all = layers.model.layers;
  const bool has_blocks = std::any_of(all.begin(), all.end(), [](const Layer& layer) { return !!layer.block; });
  if (!value.is_map()) {
    enum class What : std::uint8_t { nothing, blocks, operations };
    const What what = value.one_of<What>(
        {{"false", What::nothing}, {"true", What::blocks}, {"operations", What::operations}}, What::nothing);
    layers.recomputed.any = what == What::blocks;
    if (what == What::operations) recompute_operations(layers.model);
    if (what == What::nothing || has_blocks || all.empty()) return;
  } else {
    const YamlReader modules = value.optional("modules"), names = value.optional("layers");
    const YamlReader first = value.optional("first"), every = value.optional("every");
    const YamlReader together = value.optional("together");
    RecomputedBlocks& blocks = layers.recomputed;
    blocks.first = first.integer(1, kMostRecomputed, 0);
    blocks.every = every.integer(1, kMostRecomputed, 1);
    blocks.together = together.integer(1, kMostRecomputed, 1);
    blocks.any = first || every || together;
    const bool has_parts = !modules.list().empty() || !names.list().empty();
    if (blocks.any == has_parts) {
      value.error(
          "needs either whole blocks (first, every, together) or parts of every block (modules, layers), not both");
    } else if (has_parts) {
      read_recomputed_layers(modules, names, layers.model);
    }
    if (has_blocks || all.empty()) return;
  }
  value.error(fmt::format("computes again the groups that repeat; model '{}' has none", layers.model.name));
}

}  // namespace tandem
