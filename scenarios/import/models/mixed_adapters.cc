// Families whose layers are not alike.
#include <algorithm>

#include "scenarios/import/models/adapter_parts.h"
#include "scenarios/import/models/decoder_adapters.h"

namespace tandem {

void adapt_gemma2(const ConfigValues& config, TransformerSpec& spec) {
  if (config.has({"layer_types"})) return;
  for (std::size_t i = 1; i < spec.blocks.size(); i += 2) spec.blocks[i].block.attention->window = 0;
}

void adapt_gemma3(const ConfigValues& config, TransformerSpec& spec) {
  if (config.has({"layer_types"}) || config.has({"sliding_window_pattern"})) return;
  for (std::size_t i = 5; i < spec.blocks.size(); i += 6) spec.blocks[i].block.attention->window = 0;
}

namespace {

void adapt_gemma4_layer(const ConfigValues& config, bool is_full, BlockSpec& block) {
  AttentionSpec& attention = *block.attention;
  if (is_full) {
    attention.size = config.size({"global_head_dim"}, attention.size);
    attention.value_is_key = config.boolean({"attention_k_eq_v"}, false);
    if (attention.value_is_key) {
      attention.key_heads = config.size({"num_global_key_value_heads"}, attention.key_heads);
    }
  }
  block.more_parameters = 1;  // a scale of the layer's output
}

}  // namespace

// Full attention has heads of another size, and a layer may have experts beside its dense part. E2B and E4B have
// embeddings for each layer, whose table has most of their parameters, and layers without keys of their own.
void adapt_gemma4(const ConfigValues& config, TransformerSpec& spec) {
  const std::vector<std::string> kinds = config.texts({"layer_types"});
  const std::int64_t per_layer = config.count({"hidden_size_per_layer_input"}, 0);
  const auto layers = static_cast<std::int64_t>(spec.blocks.size());
  const std::int64_t shared = config.count({"num_kv_shared_layers"}, 0);
  FeedForwardSpec::Experts experts;
  if (config.boolean({"enable_moe_block"}, false)) {
    experts.count = config.size({"num_experts"});
    experts.used = config.size({"top_k_experts", "num_experts_per_tok"});
    experts.width = config.size({"moe_intermediate_size", "expert_intermediate_size"});
    experts.with_dense = true;
  }
  for (std::size_t i = 0; i < spec.blocks.size(); ++i) {
    BlockSpec& block = spec.blocks[i].block;
    const bool is_full = i < kinds.size() ? kinds[i] == "full_attention" : (i + 1) % 6 == 0;
    adapt_gemma4_layer(config, is_full, block);
    if (is_full) block.attention->window = 0;
    if (experts.count > 0) {
      block.feed_forward.experts = experts;
      block.more_parameters += 4 * spec.hidden + experts.count;  // three more norms, scales of the router
    }
    if (per_layer > 0) block.more_parameters += 2 * spec.hidden * per_layer + spec.hidden;
    const bool is_shared = static_cast<std::int64_t>(i) >= layers - shared;
    if (is_shared && config.boolean({"use_double_wide_mlp"}, false)) block.feed_forward.width *= 2;
    if (is_shared) block.attention->key_heads = 0;
  }
  if (per_layer == 0) return;
  const std::int64_t entries = config.size({"vocab_size_per_layer_input"}, spec.vocabulary);
  spec.more_parameters = entries * layers * per_layer + spec.hidden * layers * per_layer + per_layer;
}

namespace {

// NVIDIA's search gives widths as multiples of the hidden size; rounds up to 256.
std::int64_t nas_width(double multiple, std::int64_t hidden) {
  const auto width = static_cast<std::int64_t>(2 * multiple * static_cast<double>(hidden) / 3);
  return (width + 255) / 256 * 256;
}

}  // namespace

// Each layer has an attention of its own, a product in its place, or nothing.
void adapt_nemotron_nas(const ConfigValues& config, TransformerSpec& spec) {
  const JsonValue* list = config.find({"block_configs"});
  if (list == nullptr || !list->is_list()) config.fail(config.object(), "block_configs", "is missing");
  for (std::size_t i = 0; i < std::min(spec.blocks.size(), list->items.size()); ++i) {
    const ConfigValues one(list->items[i], config.file(), "block_configs");
    BlockSpec& block = spec.blocks[i].block;
    if (const auto attention = one.map({"attention"})) {
      const std::int64_t group = attention->count({"n_heads_in_group"}, 0);
      if (group > 0) block.attention->key_heads = std::max<std::int64_t>(1, block.attention->heads / group);
      if (attention->boolean({"replace_with_linear"}, false)) {
        block.more_parameters += spec.hidden * spec.hidden + spec.hidden;
        block.attention.reset();
      } else if (attention->boolean({"no_op"}, false)) {
        block.attention.reset();
      }
    }
    if (const auto feed = one.map({"ffn"})) {
      if (feed->boolean({"no_op"}, false)) {
        block.feed_forward.width = 0;
      } else if (feed->boolean({"replace_with_linear"}, false)) {
        block.more_parameters += spec.hidden * spec.hidden;
        block.feed_forward.width = 0;
      } else {
        block.feed_forward.width =
            feed->size({"intermediate_size"}, nas_width(feed->number({"ffn_mult"}, 4), spec.hidden));
      }
    }
  }
}

namespace {

AttentionSpec::Linear mamba2(const ConfigValues& config) {
  const std::int64_t heads = config.size({"mamba_num_heads"}, 128);
  const std::int64_t size = config.size({"mamba_head_dim"}, 64);
  const std::int64_t state = config.size({"ssm_state_size"}, 128);
  const std::int64_t groups = config.size({"n_groups"}, 8);
  AttentionSpec::Linear linear;
  linear.output = heads * size;
  linear.convolved = linear.output + 2 * groups * state;
  linear.projected = linear.output + linear.convolved + heads;
  linear.states = heads;
  linear.state_rows = state;
  linear.state_columns = size;
  const std::int64_t bias = config.boolean({"use_conv_bias"}, true) ? 1 : 0;
  linear.more_parameters = linear.convolved * (config.size({"conv_kernel"}, 4) + bias) + 3 * heads + linear.output;
  return linear;
}

}  // namespace

// Each layer is one of a Mamba mixer (M), attention (*), a dense part (-) and experts (E).
void adapt_nemotron_h(const ConfigValues& config, TransformerSpec& spec) {
  const std::string pattern = config.text({"hybrid_override_pattern"});
  if (pattern.size() != spec.blocks.size() || pattern.find_first_not_of("M*-E") != std::string::npos) {
    config.fail(config.object(), "hybrid_override_pattern", "needs a letter of M, *, - and E for each layer");
  }
  const AttentionSpec::Linear linear = mamba2(config);
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    BlockSpec& block = spec.blocks[i].block;
    const bool is_mixer = pattern[i] == 'M' || pattern[i] == '*';
    if (is_mixer) block.feed_forward = {};
    if (!is_mixer) block.attention.reset();
    if (pattern[i] == 'M') block.attention->linear = linear;
    if (pattern[i] == '-') block.feed_forward.experts.reset();
  }
  each_experts(spec, [](auto& experts) { experts.has_router_bias = true; });
}

// Three of four layers have a gated delta rule in place of attention.
void adapt_qwen3_next(const ConfigValues& config, TransformerSpec& spec) {
  const std::vector<std::string> kinds = config.texts({"layer_types"});
  const std::int64_t every = config.size({"full_attention_interval"}, 4);
  const std::int64_t heads = config.size({"linear_num_value_heads"}, 32);
  const std::int64_t size = config.size({"linear_value_head_dim"}, 128);
  const std::int64_t key_size = config.size({"linear_key_head_dim"}, 128);
  const std::int64_t keys = config.size({"linear_num_key_heads"}, 16) * key_size;
  AttentionSpec::Linear linear;
  linear.output = heads * size;
  linear.projected = 2 * keys + 2 * linear.output + 2 * heads;
  linear.convolved = 2 * keys + linear.output;
  linear.states = heads;
  linear.state_rows = key_size;
  linear.state_columns = size;
  linear.more_parameters = linear.convolved * config.size({"linear_conv_kernel_dim"}, 4) + 2 * heads + size;
  for (std::size_t i = 0; i < spec.blocks.size(); ++i) {
    AttentionSpec& attention = *spec.blocks[i].block.attention;
    const bool is_linear =
        i < kinds.size() ? kinds[i] == "linear_attention" : (static_cast<std::int64_t>(i) + 1) % every != 0;
    if (is_linear) attention.linear = linear;
    attention.gated = !is_linear;
  }
  each_experts(spec, [](auto& experts) { experts.has_shared_gate = experts.shared_width > 0; });
}

}  // namespace tandem
