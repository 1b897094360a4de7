// Families since 2025. Facts from their modeling_*.py at huggingface.co and in huggingface/transformers.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "scenarios/import/models/adapter_parts.h"
#include "scenarios/import/models/decoder_adapters.h"

namespace tandem {
namespace {

// Products of sizes of any file, which are at most 2^50: a model of such sizes is refused for them later.
std::int64_t product(std::int64_t a, std::int64_t b) {
  constexpr double kMost = 1125899906842624.0;
  return static_cast<std::int64_t>(std::min(kMost, static_cast<double>(a) * static_cast<double>(b)));
}

[[noreturn]] void fail_list(const ConfigValues& config, std::string_view name, std::size_t layers) {
  const JsonValue* at = config.find({name});
  config.fail(at != nullptr ? *at : config.object(), name, fmt::format("needs an entry for each of {} layers", layers));
}

// Returns whether each layer is in a list of layers, which are counted from `first`.
std::vector<bool> layers_in(const std::vector<std::int64_t>& list, std::size_t layers, std::int64_t first) {
  std::vector<bool> result(layers, false);
  for (const std::int64_t layer : list) {
    const std::int64_t index = layer - first;
    if (index >= 0 && index < static_cast<std::int64_t>(layers)) result[static_cast<std::size_t>(index)] = true;
  }
  return result;
}

// Mamba 2 as Granite 4 and Bamba name its sizes.
AttentionSpec::Linear mamba2_of_granite(const ConfigValues& config, std::int64_t hidden) {
  const std::int64_t heads = config.size({"mamba_n_heads"}, 128);
  const std::int64_t expanded = product(config.size({"mamba_expand"}, 2), hidden);
  const std::int64_t size = !config.has({"mamba_d_head"}) || config.text({"mamba_d_head"}, "auto") == "auto"
                                ? std::max<std::int64_t>(1, expanded / heads)
                                : config.size({"mamba_d_head"});
  const std::int64_t state = config.size({"mamba_d_state"}, 256);
  const std::int64_t groups = config.size({"mamba_n_groups"}, 1);
  AttentionSpec::Linear linear;
  linear.output = expanded;
  linear.convolved = expanded + product(2 * groups, state);
  linear.projected = expanded + linear.convolved + heads;
  linear.states = heads;
  linear.state_rows = state;
  linear.state_columns = size;
  const std::int64_t bias = config.boolean({"mamba_conv_bias"}, true) ? 1 : 0;
  linear.more_parameters = product(linear.convolved, config.size({"mamba_d_conv"}, 4) + bias) + 3 * heads + expanded;
  if (config.boolean({"mamba_proj_bias"}, false)) linear.more_parameters += linear.projected + hidden;
  return linear;
}

}  // namespace

// Ling and Ring 2.0.
void adapt_bailing_moe_v2(const ConfigValues& config, TransformerSpec& spec) {
  if (config.boolean({"use_qk_norm"}, true)) {
    each_attention(spec, [](AttentionSpec& attention) { attention.head_norm = AttentionSpec::HeadNorm::per_head; });
  }
  const bool has_bias = config.boolean({"moe_router_enable_expert_bias"}, true);
  each_experts(spec, [&](auto& experts) { experts.has_router_bias = has_bias; });
}

// Most layers have Mamba 2 in place of attention.
void adapt_bamba(const ConfigValues& config, TransformerSpec& spec) {
  const AttentionSpec::Linear linear = mamba2_of_granite(config, spec.hidden);
  const std::vector<std::int64_t> attention = config.counts({"attn_layer_indices"});
  const std::vector<bool> has_attention = layers_in(attention, spec.blocks.size(), 0);
  for (std::size_t i = 0; i < spec.blocks.size(); ++i) {
    if (!has_attention[i]) spec.blocks[i].block.attention->linear = linear;
  }
}

void adapt_exaone_moe(const ConfigValues& config, TransformerSpec& spec) {
  const std::vector<std::string> has = config.texts({"is_moe_layer"});
  for (std::size_t i = 0; i < std::min(has.size(), spec.blocks.size()); ++i) {
    if (has[i] == "false") spec.blocks[i].block.feed_forward.experts.reset();
  }
  adapt_router_bias(config, spec);
}

// Granite 4: layers of Mamba 2 and of attention, each with a dense part and, unless there are none, experts.
void adapt_granite_hybrid(const ConfigValues& config, TransformerSpec& spec) {
  const std::vector<std::string> kinds = config.texts({"layer_types", "layers_block_type"});
  if (kinds.size() != spec.blocks.size()) fail_list(config, "layer_types", spec.blocks.size());
  const bool has_mamba = std::find(kinds.begin(), kinds.end(), "mamba") != kinds.end();
  const AttentionSpec::Linear linear = has_mamba ? mamba2_of_granite(config, spec.hidden) : AttentionSpec::Linear{};
  const std::int64_t shared = config.size({"shared_intermediate_size"}, 1024);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    BlockSpec& block = spec.blocks[i].block;
    if (kinds[i] == "mamba") block.attention->linear = linear;
    if (!block.feed_forward.experts) block.feed_forward.width = shared;
  }
}

// Moonshot's delta attention, with a decay for every channel, in three of four layers; latent attention in the others.
void adapt_kimi_linear(const ConfigValues& config, TransformerSpec& spec) {
  adapt_deepseek(config, spec);
  each_experts(spec, [](auto& experts) { experts.has_router_bias = true; });
  const auto sizes = config.map({"linear_attn_config"});
  if (!sizes) config.fail(config.object(), "linear_attn_config", "is missing, and the size of the model depends on it");
  const std::int64_t heads = sizes->size({"num_heads"});
  const std::int64_t size = sizes->size({"head_dim"});
  const std::int64_t inner = product(heads, size);
  AttentionSpec::Linear linear;
  linear.output = inner;
  linear.convolved = 3 * inner;
  linear.projected = 3 * inner + 2 * size + heads;  // the decay and the gate pass through short vectors
  linear.states = heads;
  linear.state_rows = linear.state_columns = size;
  linear.more_parameters = product(linear.convolved, sizes->size({"short_conv_kernel_size"}, 4)) +
                           product(2 * size, inner) + inner + heads + size;
  constexpr std::int64_t kFirst = 1;
  const std::vector<bool> is_full = layers_in(sizes->counts({"full_attn_layers"}), spec.blocks.size(), kFirst);
  const std::vector<std::int64_t> named = sizes->counts({"kda_layers"});
  const std::vector<bool> is_linear = layers_in(named, spec.blocks.size(), kFirst);
  for (std::size_t i = 0; i < spec.blocks.size(); ++i) {
    if (named.empty() ? !is_full[i] : is_linear[i]) spec.blocks[i].block.attention->linear = linear;
  }
}

// Liquid's models: short convolutions with two gates in place of attention.
void adapt_lfm2(const ConfigValues& config, TransformerSpec& spec) {
  const std::vector<std::string> kinds = config.texts({"layer_types"});
  const std::vector<bool> is_full = layers_in(config.counts({"full_attn_idxs"}), spec.blocks.size(), 0);
  AttentionSpec::Linear linear;
  linear.output = spec.hidden;
  linear.projected = 3 * spec.hidden;
  linear.convolved = spec.hidden;
  linear.more_parameters =
      product(spec.hidden, config.size({"conv_L_cache"}, 3) + (config.boolean({"conv_bias"}, false) ? 1 : 0));
  for (std::size_t i = 0; i < spec.blocks.size(); ++i) {
    const bool is_convolution = i < kinds.size() ? kinds[i] == "conv" : !is_full[i];
    if (is_convolution) spec.blocks[i].block.attention->linear = linear;
  }
  each_experts(spec, [&](auto& experts) { experts.has_router_bias = config.boolean({"use_expert_bias"}, true); });
  const std::int64_t width = config.count({"block_ff_dim"}, 0);
  if (width == 0 || !config.boolean({"block_auto_adjust_ff_dim"}, true)) return;
  const double multiplier = std::clamp(config.number({"block_ffn_dim_multiplier"}, 1), 0.0, 1e3);
  const std::int64_t multiple = config.size({"block_multiple_of"}, 256);
  const std::int64_t two_thirds = 2 * width / 3;
  const auto adjusted = static_cast<std::int64_t>(multiplier * static_cast<double>(two_thirds));
  set_width(spec, std::max<std::int64_t>(1, (adjusted + multiple - 1) / multiple * multiple));
}

// Each layer has two attentions and two dense parts; the experts are beside the first of them. Some experts do
// nothing, and tokens are spread over all of them.
void adapt_longcat_flash(const ConfigValues& config, TransformerSpec& spec) {
  adapt_deepseek(config, spec);
  const std::int64_t idle = config.count({"zero_expert_num"}, 0);
  std::vector<Blocks> halves;
  for (Blocks blocks : spec.blocks) {
    if (auto& experts = blocks.block.feed_forward.experts) {
      const std::int64_t all = experts->count + idle;
      experts->used = std::max<std::int64_t>(1, (product(experts->used, experts->count) + all / 2) / all);
      experts->with_dense = true;
      experts->has_router_bias = true;
      experts->idle = idle;
    }
    halves.push_back(blocks);
    blocks.block.feed_forward.experts.reset();
    halves.push_back(blocks);
  }
  spec.blocks = std::move(halves);
}

// Sliding layers (1 in the pattern) have heads of their own.
void adapt_mimo_v2(const ConfigValues& config, TransformerSpec& spec) {
  const std::vector<std::int64_t> pattern = config.counts({"hybrid_layer_pattern"});
  if (pattern.size() != spec.blocks.size()) fail_list(config, "hybrid_layer_pattern", spec.blocks.size());
  const std::int64_t window = config.count({"sliding_window", "sliding_window_size"}, 0);
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    AttentionSpec& attention = *spec.blocks[i].block.attention;
    const bool is_sliding = pattern[i] != 0;
    attention.window = is_sliding ? window : 0;
    attention.has_sinks =
        config.boolean({is_sliding ? "add_swa_attention_sink_bias" : "add_full_attention_sink_bias"}, is_sliding);
    if (!is_sliding) continue;
    attention.heads = config.size({"swa_num_attention_heads"}, attention.heads);
    attention.key_heads = config.size({"swa_num_key_value_heads", "swa_num_kv_heads"}, attention.key_heads);
    attention.size = config.size({"swa_head_dim"}, attention.size);
    attention.value_size = config.count({"swa_v_head_dim"}, attention.value_size);
  }
  const bool has_bias = config.text({"topk_method"}, "noaux_tc") == "noaux_tc";
  each_experts(spec, [&](auto& experts) { experts.has_router_bias = has_bias; });
}

// MiniMax-Text-01 and M1: most layers have linear attention with a gate.
void adapt_minimax(const ConfigValues& config, TransformerSpec& spec) {
  const std::vector<std::int64_t> kinds = config.counts({"attn_type_list"});
  const std::vector<std::string> named = config.texts({"layer_types"});
  for (std::size_t i = 0; i < spec.blocks.size(); ++i) {
    AttentionSpec& attention = *spec.blocks[i].block.attention;
    const bool is_linear = i < kinds.size()   ? kinds[i] == 0
                           : i < named.size() ? named[i] == "linear_attention"
                                              : (i + 1) % 8 != 0;
    if (!is_linear) continue;
    AttentionSpec::Linear linear;
    linear.output = product(attention.heads, attention.size);
    linear.projected = 4 * linear.output;
    linear.states = attention.heads;
    linear.state_rows = linear.state_columns = attention.size;
    linear.more_parameters = linear.output;
    attention.linear = linear;
  }
}

namespace {

// "4,5,6": the layers that have experts.
void keep_experts(const ConfigValues& config, TransformerSpec& spec) {
  const JsonValue* stated = config.find({"moe_layers_enum"});
  if (stated == nullptr) return;
  std::vector<std::int64_t> list = config.counts({"moe_layers_enum"});
  for (const char *at = stated->text.data(), *end = at + stated->text.size(); at < end;) {
    std::int64_t layer = 0;
    const auto [next, error] = std::from_chars(at, end, layer);
    if (error != std::errc{})
      config.fail(*stated, "moe_layers_enum", "expected numbers of layers with commas between them");
    list.push_back(layer);
    at = next + 1;
  }
  const std::vector<bool> has = layers_in(list, spec.blocks.size(), 0);
  for (std::size_t i = 0; i < has.size(); ++i) {
    if (!has[i]) spec.blocks[i].block.feed_forward.experts.reset();
  }
}

}  // namespace

// Step 3: queries are made from a short vector, and one head of keys and values serves all.
void adapt_step3(const ConfigValues& config, TransformerSpec& spec) {
  const std::int64_t rank = config.count({"share_q_dim"}, 0);
  const std::int64_t keys = config.size({"num_attention_groups"}, 1);
  each_attention(spec, [&](AttentionSpec& attention) {
    attention.query_rank = rank;
    attention.key_heads = keys;
  });
  keep_experts(config, spec);
}

// Sliding layers have heads of their own, and every head a gate.
void adapt_step3p5(const ConfigValues& config, TransformerSpec& spec) {
  const std::vector<std::string> kinds = config.texts({"layer_types"});
  const bool has_gate = config.boolean({"use_head_wise_attn_gate"}, false);
  const std::int64_t keys = config.size({"num_attention_groups"}, 8);
  const auto other = config.map({"attention_other_setting"});
  const std::string other_kind = other ? other->text({"attention_type"}, "sliding_attention") : "";
  for (std::size_t i = 0; i < spec.blocks.size(); ++i) {
    AttentionSpec& attention = *spec.blocks[i].block.attention;
    attention.has_head_gate = has_gate;
    attention.key_heads = keys;
    if (!other || i >= kinds.size() || kinds[i] != other_kind) continue;
    attention.heads = other->size({"num_attention_heads"}, attention.heads);
    attention.key_heads = other->size({"num_attention_groups"}, keys);
    attention.size = other->size({"head_dim"}, attention.size);
  }
  keep_experts(config, spec);
  each_experts(spec, [&](auto& experts) { experts.has_router_bias = config.boolean({"use_moe_router_bias"}, true); });
}

}  // namespace tandem
