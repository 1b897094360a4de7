#include <algorithm>

#include "scenarios/import/models/encoder_families.h"

namespace tandem {
namespace {

// Returns a tower's blocks over patches; the caller counts the parts before and after them.
TransformerSpec tower_of(std::int64_t hidden, std::int64_t layers, std::int64_t heads, std::int64_t width) {
  TransformerSpec spec;
  spec.hidden = hidden;
  spec.has_fixed_tokens = true;
  spec.tokens = 1024;
  spec.norm = NormKind::layer;
  spec.final_norm = false;
  spec.head = TransformerSpec::Head::none;
  AttentionSpec attention;
  attention.heads = attention.key_heads = heads;
  attention.size = std::max<std::int64_t>(1, hidden / heads);
  attention.query_bias = attention.key_bias = attention.value_bias = attention.output_bias = true;
  spec.blocks = {
      {.copies = layers,
       .block = {
           .attention = attention,
           .feed_forward = {
               .width = width, .gated = false, .up_bias = true, .down_bias = true, .activation = Activation::gelu}}}};
  return spec;
}

std::int64_t linear(std::int64_t inputs, std::int64_t outputs) {
  return inputs * outputs + outputs;
}

// Qwen 2, 2.5 and 3: four patches become a token of the language model.
TransformerSpec read_qwen_tower(const ConfigValues& config, bool is_second, bool is_third, std::int64_t language) {
  const bool is_first = !is_second && !is_third;
  const std::int64_t hidden = is_first ? config.size({"embed_dim"}) : config.size({"hidden_size"});
  const std::int64_t ratio = config.size({"mlp_ratio"}, 4);
  const std::int64_t width = config.size({"intermediate_size"}, ratio * hidden);
  TransformerSpec spec = tower_of(hidden, config.size({"depth"}), config.size({"num_heads"}), width);
  if (is_second) {
    spec.norm = NormKind::rms;
    spec.blocks[0].block.feed_forward.gated = true;
  }
  const std::int64_t patch = config.size({"patch_size"}, 14);
  const std::int64_t depth =
      config.size({"in_channels", "in_chans"}, 3) * config.size({"temporal_patch_size"}, 2) * patch * patch;
  const std::int64_t merged = config.size({"spatial_merge_size"}, 2) * config.size({"spatial_merge_size"}, 2) * hidden;
  const std::int64_t output = config.size({"out_hidden_size"}, language);
  const std::int64_t product = linear(merged, merged) + linear(merged, output);
  spec.more_parameters = depth * hidden + product + (is_second ? hidden : 2 * hidden);
  if (is_third) {
    const auto levels = static_cast<std::int64_t>(config.counts({"deepstack_visual_indexes"}).size());
    spec.more_parameters +=
        hidden + config.count({"num_position_embeddings"}, 2304) * hidden + levels * (product + 2 * merged);
  }
  return spec;
}

TransformerSpec read_llama4_tower(const ConfigValues& config, std::int64_t language) {
  const std::int64_t hidden = config.size({"hidden_size"}), width = config.size({"intermediate_size"});
  TransformerSpec spec =
      tower_of(hidden, config.size({"num_hidden_layers"}), config.size({"num_attention_heads"}), width);
  const std::int64_t patch = config.size({"patch_size"}, 14), side = config.size({"image_size"}, 336) / patch;
  const std::int64_t middle = config.size({"projector_input_dim"}, 4096),
                     output = config.size({"projector_output_dim"}, 4096);
  spec.more_parameters = 3 * patch * patch * hidden + hidden + (side * side + 1) * hidden + 4 * hidden +
                         width * middle + middle * output + config.size({"vision_output_dim"}, output) * language;
  spec.blocks[0].block.norms = BlockSpec::Norms::before;
  return spec;
}

}  // namespace

std::optional<TransformerSpec> read_vision_tower(const ConfigValues& config, const std::string& model_type,
                                                 std::int64_t language_hidden) {
  const std::string kind = config.text({"model_type"});
  const bool is_qwen3 = model_type.starts_with("qwen3_vl") || model_type.starts_with("qwen3_5");
  if (model_type == "qwen2_vl" || model_type == "qwen2_5_vl" || is_qwen3) {
    return read_qwen_tower(config, model_type == "qwen2_5_vl", is_qwen3, language_hidden);
  }
  if (model_type == "llama4" && config.has({"hidden_size"})) return read_llama4_tower(config, language_hidden);
  const auto& families = encoder_families();
  const auto family = std::find_if(families.begin(), families.end(), [&](const auto& one) { return one.name == kind; });
  if (family == families.end()) return std::nullopt;
  TransformerSpec tower = family->read(config, "");
  const std::int64_t h = tower.hidden;
  tower.pooler.present = false;
  if (model_type == "gemma3") {
    tower.more_parameters = h * language_hidden + h;
  } else if (model_type == "gemma4") {
    tower.more_parameters = h * language_hidden;
  } else if (model_type == "mistral3") {
    tower.more_parameters = h + 4 * h * h + h * language_hidden + language_hidden * language_hidden;
  } else {  // LLaVA's two layers
    tower.more_parameters = linear(h, language_hidden) + linear(language_hidden, language_hidden);
  }
  return tower;
}

}  // namespace tandem
