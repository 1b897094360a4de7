#include <fmt/format.h>

#include <algorithm>

#include "scenarios/import/models/decoder_families.h"

namespace tandem {
namespace {

using Bias = DecoderFamily::Bias;
using BiasKey = DecoderFamily::BiasKey;

constexpr std::int64_t kMostLayers = 4096;
constexpr std::int64_t kMostExperts = 16384;

std::int64_t at_most(const ConfigValues& config, ConfigValues::Names names, std::int64_t value, std::int64_t most) {
  if (value <= most) return value;
  const JsonValue* found = config.find(names);
  config.fail(found != nullptr ? *found : config.object(), *names.begin(),
              "is more than any model has: " + std::to_string(value));
}

// If heads have no size of their own, their number must divide the hidden size; the number of key heads must divide
// that of query heads.
void check_heads(const ConfigValues& config, const AttentionSpec& attention, std::int64_t hidden) {
  const auto fail = [&](std::string_view name, const std::string& message) {
    const JsonValue* found = config.find({name});
    config.fail(found != nullptr ? *found : config.object(), name, message);
  };
  const bool has_size = config.has(
      {"head_dim", "attention_head_dim", "kv_channels", "d_kv", "head_size", "qk_head_dim", "qk_nope_head_dim"});
  if (!has_size && hidden % attention.heads != 0) {
    fail("num_attention_heads",
         fmt::format("{} heads do not divide the hidden size {}, and no head_dim is given", attention.heads, hidden));
  }
  if (attention.heads % attention.key_heads != 0) {
    fail("num_key_value_heads",
         fmt::format("{} heads of keys do not divide {} heads", attention.key_heads, attention.heads));
  }
}

AttentionSpec read_attention(const ConfigValues& config, const DecoderFamily& family, std::int64_t hidden) {
  AttentionSpec attention;
  attention.heads = config.size({"num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads"});
  const std::int64_t keys = config.size(
      {"num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num", "n_kv_heads"}, attention.heads);
  attention.key_heads = keys;
  attention.size = config.size({"head_dim", "attention_head_dim", "kv_channels", "d_kv", "head_size"},
                               std::max<std::int64_t>(1, hidden / attention.heads));
  attention.value_size = config.count({"v_head_dim"}, 0);
  check_heads(config, attention, hidden);
  attention.rotary = !family.positions;
  if (config.boolean({"use_qk_norm"}, true)) attention.head_norm = family.head_norm;
  const bool inputs = family.bias != Bias::none;
  const bool output = family.bias == Bias::all;
  attention.query_bias = attention.key_bias = attention.value_bias = inputs;
  attention.output_bias = output;
  if (family.bias_key != BiasKey::none) {
    const bool stated =
        config.boolean({"attention_bias", "qkv_bias", "add_qkv_bias", "use_qkv_bias", "use_bias"}, inputs);
    attention.query_bias = attention.key_bias = attention.value_bias = stated;
    if (family.bias_key == BiasKey::all) attention.output_bias = stated;
  }
  return attention;
}

FeedForwardSpec::Experts read_experts(const ConfigValues& config, std::int64_t width) {
  FeedForwardSpec::Experts experts;
  experts.count = config.count({"num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts",
                                "num_moe_experts", "num_routed_experts"},
                               0);
  at_most(config, {"num_local_experts", "num_experts", "n_routed_experts"}, experts.count, kMostExperts);
  // Without experts, sizes of experts may be 0.
  const auto positive = [&](ConfigValues::Names names, std::int64_t otherwise) {
    const std::int64_t stated = config.count_of_layers(names, otherwise);
    return stated < 1 && experts.count > 0 ? config.size(names) : std::max<std::int64_t>(1, stated);
  };
  experts.used = positive({"num_experts_per_tok", "num_experts_per_token", "top_k_experts", "experts_per_token",
                           "moe_topk", "moe_top_k", "moe_k", "num_selected_experts"},
                          1);
  experts.width = positive(
      {"moe_intermediate_size", "expert_intermediate_size", "moe_ffn_hidden_size", "expert_ffn_hidden_size"}, width);
  const std::int64_t shared = config.count_of_layers(
      {"n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert"}, 0);
  experts.shared_width = config.count({"shared_expert_intermediate_size", "moe_shared_expert_intermediate_size",
                                       "shared_intermediate_size", "share_expert_dim", "share_expert_dims"},
                                      shared * experts.width);
  if (experts.count > 0 && experts.used > experts.count) {
    const JsonValue* used = config.find({"num_experts_per_tok", "num_experts_per_token", "top_k_experts",
                                         "experts_per_token", "moe_topk", "moe_top_k", "moe_k"});
    config.fail(used != nullptr ? *used : config.object(), "num_experts_per_tok",
                "is more than there are experts: " + std::to_string(experts.count));
  }
  return experts;
}

// Returns which layers have experts.
std::vector<bool> layers_with_experts(const ConfigValues& config, std::int64_t layers) {
  std::vector<bool> result(static_cast<std::size_t>(layers), true);
  const std::int64_t first =
      config.count({"first_k_dense_replace", "num_dense_layers", "moe_layer_start_index", "n_dense_layers"}, 0);
  const std::int64_t last = config.count({"moe_layer_end_index"}, layers - 1);
  const std::int64_t every = config.size({"decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_interval"}, 1);
  const std::vector<std::int64_t> dense = config.counts({"mlp_only_layers"});
  const std::vector<std::int64_t> stated = config.counts({"moe_layers"});
  std::vector<std::int64_t> by_layer = config.counts({"moe_layer_freq"});
  const std::int64_t period = by_layer.empty() ? config.size({"moe_layer_freq"}, 1) : 1;
  const std::vector<std::string> kinds = config.texts({"mlp_layer_types"});
  for (std::int64_t i = 0; i < layers; ++i) {
    const auto index = static_cast<std::size_t>(i);
    bool has = i >= first && i <= last && (i + 1) % every == 0 && i % period == 0;
    if (std::find(dense.begin(), dense.end(), i) != dense.end()) has = false;
    if (!stated.empty()) has = std::find(stated.begin(), stated.end(), i) != stated.end();
    if (index < by_layer.size()) has = by_layer[index] != 0;
    if (index < kinds.size()) has = kinds[index] != "dense";
    result[index] = has;
  }
  return result;
}

// Gives layers their windows of attention, by their kinds.
void read_windows(const ConfigValues& config, std::vector<BlockSpec>& layers) {
  const std::int64_t window = config.count({"sliding_window", "sliding_window_size", "attention_window_size"}, 0);
  if (window == 0 || !config.boolean({"use_sliding_window"}, true)) return;
  const std::vector<std::string> kinds = config.texts({"layer_types"});
  const std::string letters = config.text({"sliding_window_pattern"});  // "LLLG": local, global
  const std::int64_t period =
      letters.empty() ? config.count({"sliding_window_pattern", "_sliding_window_pattern"}, 0) : 0;
  const bool is_qwen = config.has({"use_sliding_window"});
  const std::int64_t first = is_qwen ? config.count({"max_window_layers"}, 0) : 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (!layers[i].attention) continue;
    bool has = static_cast<std::int64_t>(i) >= first;
    if (period > 0) has = (static_cast<std::int64_t>(i) + 1) % period != 0;
    if (!letters.empty()) has = letters[i % letters.size()] == 'L';
    if (i < kinds.size()) has = kinds[i].find("sliding") != std::string::npos;
    if (has) layers[i].attention->window = window;
  }
}

std::vector<BlockSpec> read_layers(const ConfigValues& config, const DecoderFamily& family, std::int64_t hidden) {
  const ConfigValues::Names names{"num_hidden_layers", "n_layer", "n_layers", "num_layers"};
  const std::int64_t count = at_most(config, names, config.size(names), kMostLayers);
  BlockSpec block{.attention = read_attention(config, family, hidden), .norms = family.norms};
  FeedForwardSpec& feed = block.feed_forward;
  feed.width = config.size({"intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"}, 4 * hidden);
  feed.gated = family.gated;
  feed.activation = family.activation;
  feed.up_bias = feed.down_bias = config.boolean({"mlp_bias"}, family.feed_forward_bias);
  std::vector<BlockSpec> layers(static_cast<std::size_t>(count), block);
  if (family.experts) {
    const FeedForwardSpec::Experts experts = read_experts(config, feed.width);
    const std::vector<bool> has = layers_with_experts(config, count);
    for (std::size_t i = 0; i < layers.size(); ++i) {
      if (has[i] && experts.count > 0) layers[i].feed_forward.experts = experts;
    }
  }
  read_windows(config, layers);
  return layers;
}

}  // namespace

std::vector<Blocks> runs_of(const std::vector<BlockSpec>& blocks) {
  std::vector<Blocks> runs;
  for (const BlockSpec& block : blocks) {
    if (!runs.empty() && runs.back().block == block) {
      ++runs.back().copies;
    } else {
      runs.push_back({.copies = 1, .block = block});
    }
  }
  return runs;
}

std::vector<BlockSpec> layers_of(const TransformerSpec& spec) {
  std::vector<BlockSpec> layers;
  for (const Blocks& run : spec.blocks) layers.insert(layers.end(), static_cast<std::size_t>(run.copies), run.block);
  return layers;
}

TransformerSpec read_decoder(const ConfigValues& config, const DecoderFamily& family) {
  TransformerSpec spec;
  spec.is_causal = true;
  spec.norm = family.norm;
  spec.hidden = config.size({"hidden_size", "n_embd", "d_model", "dim"});
  spec.vocabulary = config.size({"vocab_size", "padded_vocab_size"});
  spec.tied = config.boolean({"tie_word_embeddings"}, family.tied);
  if (family.positions) spec.more_entries = config.size({"max_position_embeddings", "n_positions", "n_ctx"}, 2048);
  for (BlockSpec& layer : read_layers(config, family, spec.hidden))
    spec.blocks.push_back({.copies = 1, .block = layer});
  if (family.adapt != nullptr) family.adapt(config, spec);
  spec.blocks = runs_of(layers_of(spec));
  return spec;
}

}  // namespace tandem
