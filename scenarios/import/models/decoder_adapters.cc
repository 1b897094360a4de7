#include "scenarios/import/models/decoder_adapters.h"

#include <algorithm>

#include "scenarios/import/models/adapter_parts.h"

namespace tandem {

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
  each_attention(spec, [](AttentionSpec& attention) { attention.head_norm = AttentionSpec::HeadNorm::whole; });
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

// Has latent attention, and experts whose router has a bias with DeepSeek v3's `noaux_tc`. From v3.2 on, attention sees
// tokens that small heads choose; with `indexer_types` (GLM-5.2), those of some layers choose for the next ones, too.
void adapt_deepseek(const ConfigValues& config, TransformerSpec& spec) {
  AttentionSpec::Latent latent;
  latent.query_rank = config.count({"q_lora_rank"}, 0);
  latent.rank = config.size({"kv_lora_rank"});
  latent.rotary = config.size({"qk_rope_head_dim"});
  latent.has_bias = config.boolean({"attention_bias"}, false);
  latent.index_heads = config.count({"index_n_heads"}, 0);
  latent.index_size = config.size({"index_head_dim"}, 128);
  latent.chosen = latent.index_heads > 0 ? config.size({"index_topk"}, 2048) : 0;
  const std::int64_t plain = config.size({"qk_nope_head_dim"});
  const std::int64_t value = config.size({"v_head_dim"}, plain);
  each_attention(spec, [&](AttentionSpec& attention) {
    attention.size = plain + latent.rotary;
    attention.value_size = value;
    attention.latent = latent;
    attention.query_bias = attention.key_bias = attention.value_bias = false;
    attention.output_bias = latent.has_bias;
  });
  const std::vector<std::string> indexers = config.texts({"indexer_types"});
  for (std::size_t i = 0; i < std::min(indexers.size(), spec.blocks.size()); ++i) {
    if (indexers[i] == "shared") spec.blocks[i].block.attention->latent->index_heads = 0;
  }
  const std::string type = config.text({"model_type"});
  const bool has_bias = config.text({"topk_method"}, type == "deepseek_v2" ? "greedy" : "noaux_tc") == "noaux_tc";
  each_experts(spec, [&](auto& experts) { experts.has_router_bias = has_bias; });
}

void adapt_falcon(const ConfigValues& config, TransformerSpec& spec) {
  const bool is_new = config.boolean({"new_decoder_architecture"}, false);
  const bool is_stated_parallel = config.boolean({"parallel_attn"}, true);
  const bool is_parallel = is_new || is_stated_parallel;
  const bool two = is_new && config.count({"num_ln_in_parallel_attn"}, 2) == 2;
  set_norms(spec, !is_parallel ? BlockSpec::Norms::before
                  : two        ? BlockSpec::Norms::parallel_two
                               : BlockSpec::Norms::parallel_one);
  if (!is_new) {
    const bool is_multi_query = config.boolean({"multi_query"}, true);
    each_attention(spec, [&](AttentionSpec& attention) { attention.key_heads = is_multi_query ? 1 : attention.heads; });
  }
  const bool bias = config.boolean({"bias"}, false);
  set_biases(spec, bias, bias);
  set_feed_forward_bias(spec, bias);
  set_width(spec, config.size({"ffn_hidden_size"}, 4 * spec.hidden));
}

void adapt_glm4_moe(const ConfigValues& config, TransformerSpec& spec) {
  if (config.boolean({"use_qk_norm"}, false)) {
    each_attention(spec, [](AttentionSpec& attention) { attention.head_norm = AttentionSpec::HeadNorm::per_head; });
  }
  adapt_router_bias(config, spec);
}

// In attention, only the output projection has a bias; every other layer sees a window.
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

// Layers at regular distances have experts; the others have a wider dense part.
// Three of four layers see the tokens of a chunk only, and have rotary positions.
void adapt_llama4(const ConfigValues& config, TransformerSpec& spec) {
  const std::int64_t chunk = config.count({"attention_chunk_size"}, 8192);
  const std::int64_t every = config.size({"no_rope_layer_interval"}, 4);
  const std::vector<std::int64_t> rotary = config.counts({"no_rope_layers"});  // 1: has rotary positions
  for (std::size_t i = 0; i < spec.blocks.size(); ++i) {
    const bool is_chunked = i < rotary.size() ? rotary[i] != 0 : (static_cast<std::int64_t>(i) + 1) % every != 0;
    AttentionSpec& attention = *spec.blocks[i].block.attention;
    attention.rotary = is_chunked;
    if (is_chunked) attention.chunk = chunk;
  }
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

void adapt_neox(const ConfigValues& config, TransformerSpec& spec) {
  const bool bias = config.boolean({"attention_bias"}, true);
  set_biases(spec, bias, bias);
  if (config.boolean({"use_parallel_residual"}, true)) set_norms(spec, BlockSpec::Norms::parallel_two);
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
    set_norms(spec, BlockSpec::Norms::after_sum);
    spec.final_norm = false;
  } else if (config.boolean({"_remove_final_layer_norm"}, false)) {
    spec.final_norm = false;
  }
}

void adapt_phi(const ConfigValues& config, TransformerSpec& spec) {
  spec.head_bias = true;
  if (!config.boolean({"qk_layernorm"}, false)) return;
  each_attention(spec, [](AttentionSpec& attention) { attention.head_norm = AttentionSpec::HeadNorm::bias_per_head; });
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

void adapt_router_bias(const ConfigValues&, TransformerSpec& spec) {
  each_experts(spec, [](auto& experts) { experts.has_router_bias = true; });
}

void adapt_seed_oss(const ConfigValues& config, TransformerSpec& spec) {
  const bool output = config.boolean({"attention_out_bias"}, false);
  each_attention(spec, [&](AttentionSpec& attention) { attention.output_bias = output; });
}

void adapt_stablelm(const ConfigValues& config, TransformerSpec& spec) {
  if (config.boolean({"use_parallel_residual"}, false)) set_norms(spec, BlockSpec::Norms::parallel_one);
  if (!config.boolean({"qk_layernorm"}, false)) return;
  each_attention(spec, [](AttentionSpec& attention) { attention.head_norm = AttentionSpec::HeadNorm::whole; });
}

void adapt_starcoder2(const ConfigValues& config, TransformerSpec& spec) {
  const bool bias = config.boolean({"use_bias"}, true);
  set_biases(spec, bias, bias);
  set_feed_forward_bias(spec, bias);
}

}  // namespace tandem
