#include "scenarios/import/decoder_adapters.h"

#include <algorithm>

namespace tandem {
namespace {

using Norms = BlockSpec::Norms;
using HeadNorm = AttentionSpec::HeadNorm;

template <typename Do>
void each_attention(TransformerSpec& spec, Do change) {
  for (Blocks& blocks : spec.blocks) {
    if (blocks.block.attention) change(*blocks.block.attention);
  }
}

template <typename Do>
void each_experts(TransformerSpec& spec, Do change) {
  for (Blocks& blocks : spec.blocks) {
    if (blocks.block.feed_forward.experts) change(*blocks.block.feed_forward.experts);
  }
}

void set_biases(TransformerSpec& spec, bool inputs, bool output) {
  each_attention(spec, [&](AttentionSpec& attention) {
    attention.query_bias = attention.key_bias = attention.value_bias = inputs;
    attention.output_bias = output;
  });
}

void set_feed_forward_bias(TransformerSpec& spec, bool bias) {
  for (Blocks& blocks : spec.blocks) blocks.block.feed_forward.up_bias = blocks.block.feed_forward.down_bias = bias;
}

void set_norms(TransformerSpec& spec, Norms norms) {
  for (Blocks& blocks : spec.blocks) blocks.block.norms = norms;
}

void set_width(TransformerSpec& spec, std::int64_t width) {
  for (Blocks& blocks : spec.blocks) blocks.block.feed_forward.width = width;
}

void set_key_heads(TransformerSpec& spec, std::int64_t heads) {
  each_attention(spec, [&](AttentionSpec& attention) { attention.key_heads = heads; });
}

}  // namespace

void adapt_afmoe(const ConfigValues&, TransformerSpec& spec) {
  each_attention(spec, [](AttentionSpec& attention) { attention.gated = true; });
  each_experts(spec, [](auto& experts) { experts.has_router_bias = true; });
}

// xIELU has two learned numbers.
void adapt_apertus(const ConfigValues&, TransformerSpec& spec) {
  for (Blocks& blocks : spec.blocks) blocks.block.more_parameters = 2;
}

void adapt_bigcode(const ConfigValues& config, TransformerSpec& spec) {
  if (config.boolean({"multi_query"}, true)) set_key_heads(spec, 1);
}

void adapt_bloom(const ConfigValues& config, TransformerSpec& spec) {
  spec.embedding_norm = true;
  set_width(spec, config.size({"n_inner"}, 4 * spec.hidden));
  each_attention(spec, [](AttentionSpec& attention) { attention.rotary = false; });
}

// ChatGLM2 and 3, GLM-4: grouped keys if `multi_query_attention`.
void adapt_chatglm(const ConfigValues& config, TransformerSpec& spec) {
  if (!config.boolean({"multi_query_attention"}, false)) {
    each_attention(spec, [](AttentionSpec& attention) { attention.key_heads = attention.heads; });
  }
  set_biases(spec, config.boolean({"add_qkv_bias"}, false) || config.boolean({"add_bias_linear"}, false),
             config.boolean({"add_bias_linear"}, false));
  set_feed_forward_bias(spec, config.boolean({"add_bias_linear"}, false));
  if (!config.boolean({"rmsnorm"}, true)) spec.norm = NormKind::layer;
}

void adapt_cohere(const ConfigValues& config, TransformerSpec& spec) {
  if (!config.boolean({"use_qk_norm"}, false)) return;
  each_attention(spec, [](AttentionSpec& attention) { attention.head_norm = HeadNorm::whole; });
}

void adapt_dbrx(const ConfigValues& config, TransformerSpec& spec) {
  if (const auto attention = config.map({"attn_config"})) {
    set_key_heads(spec, attention->size({"kv_n_heads"}, 1));
  }
  if (const auto feed = config.map({"ffn_config"})) {
    FeedForwardSpec::Experts experts;
    experts.count = feed->size({"moe_num_experts"}, 4);
    experts.used = feed->size({"moe_top_k"}, 1);
    experts.width = feed->size({"ffn_hidden_size"}, 3584);
    for (Blocks& blocks : spec.blocks) blocks.block.feed_forward.experts = experts;
  }
}

// Latent attention; experts whose router has a bias with DeepSeek v3's `noaux_tc`.
void adapt_deepseek(const ConfigValues& config, TransformerSpec& spec) {
  AttentionSpec::Latent latent;
  latent.query_rank = config.count({"q_lora_rank"}, 0);
  latent.rank = config.size({"kv_lora_rank"});
  latent.rotary = config.size({"qk_rope_head_dim"});
  latent.has_bias = config.boolean({"attention_bias"}, false);
  latent.index_heads = config.count({"index_n_heads"}, 0);
  latent.index_size = config.size({"index_head_dim"}, 128);
  const std::int64_t plain = config.size({"qk_nope_head_dim"});
  const std::int64_t value = config.size({"v_head_dim"}, plain);
  each_attention(spec, [&](AttentionSpec& attention) {
    attention.size = plain + latent.rotary;
    attention.value_size = value;
    attention.latent = latent;
    attention.query_bias = attention.key_bias = attention.value_bias = false;
    attention.output_bias = latent.has_bias;
  });
  const std::string type = config.text({"model_type"});
  const bool has_bias = config.text({"topk_method"}, type == "deepseek_v2" ? "greedy" : "noaux_tc") == "noaux_tc";
  each_experts(spec, [&](auto& experts) { experts.has_router_bias = has_bias; });
}

void adapt_falcon(const ConfigValues& config, TransformerSpec& spec) {
  const bool is_new = config.boolean({"new_decoder_architecture"}, false);
  const bool is_parallel = is_new || config.boolean({"parallel_attn"}, true);
  const bool two = is_new && config.count({"num_ln_in_parallel_attn"}, 2) == 2;
  set_norms(spec, !is_parallel ? Norms::before : two ? Norms::parallel_two : Norms::parallel_one);
  if (!is_new) {
    const bool is_multi_query = config.boolean({"multi_query"}, true);
    each_attention(spec, [&](AttentionSpec& attention) { attention.key_heads = is_multi_query ? 1 : attention.heads; });
  }
  const bool bias = config.boolean({"bias"}, false);
  set_biases(spec, bias, bias);
  set_feed_forward_bias(spec, bias);
  set_width(spec, config.size({"ffn_hidden_size"}, 4 * spec.hidden));
}

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

// Full attention has heads of another size; a layer may have experts beside its dense part. E2B and E4B: embeddings of
// each layer, whose table is most of their parameters, and layers without keys of their own.
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
    experts.more_parameters = 4 * spec.hidden + experts.count;  // three more norms, scales of the router
  }
  for (std::size_t i = 0; i < spec.blocks.size(); ++i) {
    BlockSpec& block = spec.blocks[i].block;
    const bool is_full = i < kinds.size() ? kinds[i] == "full_attention" : (i + 1) % 6 == 0;
    adapt_gemma4_layer(config, is_full, block);
    if (is_full) block.attention->window = 0;
    if (experts.count > 0) block.feed_forward.experts = experts;
    if (per_layer > 0) block.more_parameters += 2 * spec.hidden * per_layer + spec.hidden;
    const bool is_shared = static_cast<std::int64_t>(i) >= layers - shared;
    if (is_shared && config.boolean({"use_double_wide_mlp"}, false)) block.feed_forward.width *= 2;
    if (is_shared) block.attention->key_heads = 0;
  }
  if (per_layer == 0) return;
  const std::int64_t entries = config.size({"vocab_size_per_layer_input"}, spec.vocabulary);
  spec.more_parameters = entries * layers * per_layer + spec.hidden * layers * per_layer + per_layer;
}

void adapt_glm4_moe(const ConfigValues& config, TransformerSpec& spec) {
  if (config.boolean({"use_qk_norm"}, false)) {
    each_attention(spec, [](AttentionSpec& attention) { attention.head_norm = HeadNorm::per_head; });
  }
  adapt_router_bias(config, spec);
}

// Only the sum of the heads has a bias; every other layer sees a window.
void adapt_gpt_neo(const ConfigValues& config, TransformerSpec& spec) {
  set_biases(spec, false, true);
  const std::int64_t window = config.count({"window_size"}, 256);
  for (std::size_t i = 1; i < spec.blocks.size(); i += 2) spec.blocks[i].block.attention->window = window;
}

void adapt_gpt_oss(const ConfigValues& config, TransformerSpec& spec) {
  each_attention(spec, [](AttentionSpec& attention) { attention.has_sinks = true; });
  each_experts(spec, [](auto& experts) { experts.has_router_bias = experts.has_bias = true; });
  if (config.has({"layer_types"})) return;
  for (std::size_t i = 1; i < spec.blocks.size(); i += 2) spec.blocks[i].block.attention->window = 0;
}

void adapt_gptj(const ConfigValues&, TransformerSpec& spec) {
  set_biases(spec, false, false);
  spec.head_bias = true;
}

void adapt_head_bias(const ConfigValues& config, TransformerSpec& spec) {
  spec.head_bias = config.boolean({"lm_head_bias"}, false);
}

// A list of numbers, one for each layer, or one number.
void adapt_hunyuan(const ConfigValues& config, TransformerSpec& spec) {
  const bool mixed = config.boolean({"use_mixed_mlp_moe"}, true);
  each_experts(spec, [&](auto& experts) {
    if (!mixed) experts.shared_width = 0;
  });
}

void adapt_internlm(const ConfigValues& config, TransformerSpec& spec) {
  const bool bias = config.boolean({"bias"}, false);
  set_biases(spec, config.boolean({"qkv_bias"}, bias), bias);
  if (config.text({"model_type"}) == "internlm") set_feed_forward_bias(spec, false);
}

// Every so many layers have experts, the others a wider dense part.
void adapt_llama4(const ConfigValues& config, TransformerSpec& spec) {
  const std::int64_t width = config.size({"intermediate_size"});
  const std::int64_t dense = config.size({"intermediate_size_mlp"}, width);
  for (Blocks& blocks : spec.blocks) {
    auto& experts = blocks.block.feed_forward.experts;
    if (!experts) blocks.block.feed_forward.width = dense;
    if (!experts) continue;
    experts->width = width;
    experts->shared_width = width;
  }
}

void adapt_mpt(const ConfigValues& config, TransformerSpec& spec) {
  set_width(spec, static_cast<std::int64_t>(config.number({"expansion_ratio"}, 4) * static_cast<double>(spec.hidden)));
  const bool bias = !config.boolean({"no_bias"}, true);
  set_biases(spec, bias, bias);
  set_feed_forward_bias(spec, bias);
  if (bias) spec.norm = NormKind::layer;
  const auto attention = config.map({"attn_config"});
  each_attention(spec, [&](AttentionSpec& one) {
    one.rotary = false;
    if (attention) one.key_heads = attention->size({"kv_n_heads"}, one.heads);
  });
  const bool is_alibi = attention && attention->boolean({"alibi"}, true);
  if (attention && !is_alibi) spec.more_entries = config.size({"max_seq_len"}, 2048);
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

void adapt_neox(const ConfigValues& config, TransformerSpec& spec) {
  const bool bias = config.boolean({"attention_bias"}, true);
  set_biases(spec, bias, bias);
  if (config.boolean({"use_parallel_residual"}, true)) set_norms(spec, Norms::parallel_two);
}

void adapt_opt(const ConfigValues& config, TransformerSpec& spec) {
  constexpr std::int64_t kUnusedPositions = 2;
  spec.more_entries += kUnusedPositions;
  const std::int64_t width = config.size({"word_embed_proj_dim"}, spec.hidden);
  if (width != spec.hidden) {
    spec.embedding_width = width;
    spec.more_parameters = spec.more_entries * spec.hidden;
    spec.more_entries = 0;
  }
  const bool bias = config.boolean({"enable_bias"}, true);
  set_biases(spec, bias, bias);
  set_feed_forward_bias(spec, bias);
  if (!config.boolean({"do_layer_norm_before"}, true)) {
    set_norms(spec, Norms::after_sum);
    spec.final_norm = false;
  } else if (config.boolean({"_remove_final_layer_norm"}, false)) {
    spec.final_norm = false;
  }
}

void adapt_phi(const ConfigValues& config, TransformerSpec& spec) {
  spec.head_bias = true;
  if (!config.boolean({"qk_layernorm"}, false)) return;
  each_attention(spec, [](AttentionSpec& attention) { attention.head_norm = HeadNorm::bias_per_head; });
}

// Its width counts both halves of the gated product.
void adapt_qwen1(const ConfigValues& config, TransformerSpec& spec) {
  set_width(spec, std::max<std::int64_t>(1, config.size({"intermediate_size"}) / 2));
}

void adapt_qwen2(const ConfigValues& config, TransformerSpec& spec) {
  const bool bias = config.boolean({"attention_bias", "qkv_bias"}, true);
  set_biases(spec, bias, false);
  each_experts(spec, [](auto& experts) { experts.has_shared_gate = experts.shared_width > 0; });
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

void adapt_router_bias(const ConfigValues&, TransformerSpec& spec) {
  each_experts(spec, [](auto& experts) { experts.has_router_bias = true; });
}

void adapt_seed_oss(const ConfigValues& config, TransformerSpec& spec) {
  const bool output = config.boolean({"attention_out_bias"}, false);
  each_attention(spec, [&](AttentionSpec& attention) { attention.output_bias = output; });
}

void adapt_stablelm(const ConfigValues& config, TransformerSpec& spec) {
  if (config.boolean({"use_parallel_residual"}, false)) set_norms(spec, Norms::parallel_one);
  if (!config.boolean({"qk_layernorm"}, false)) return;
  each_attention(spec, [](AttentionSpec& attention) { attention.head_norm = HeadNorm::whole; });
}

void adapt_starcoder2(const ConfigValues& config, TransformerSpec& spec) {
  const bool bias = config.boolean({"use_bias"}, true);
  set_biases(spec, bias, bias);
  set_feed_forward_bias(spec, bias);
}

}  // namespace tandem
