#include "scenarios/import/models/unused_keys.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace tandem {
namespace {

// Names or, with * at one end, their beginnings or endings.
constexpr auto kWithoutEffect = std::to_array<std::string_view>({
    "*_alpha",
    "*_beta",
    "*_dropout",
    "*_dropout_prob",
    "*_eps",
    "*_epsilon",
    "*_multiplier",
    "*_pdrop",
    "*_rope_theta",
    "*_token_id",
    "*_token_index",
    "*_tokens",
    "*_version",
    "*chunk_size",
    "_*",
    "activation_function",
    "architectures",
    "attention_method",
    "attention_softmax_in_fp32",
    "attn_logit_softcapping",
    "auto_map",
    "aux_loss_*",
    "bad_words_ids",
    "block_dim",
    "chunk_size_feed_forward",
    "clip_qkv",
    "compression_ratio",
    "custom_pipelines",
    "do_sample",
    "dtype",
    "embd_pdrop",
    "ep_size",
    "expand",
    "final_logit_softcapping",
    "finetuning_task",
    "fp32_residual_connection",
    "gradient_checkpointing",
    "hidden_act",
    "hidden_activation",
    "id2label",
    "init_*",
    "initial_context_length",
    "initializer_*",
    "is_decoder",
    "is_encoder_decoder",
    "keys_to_ignore_at_inference",
    "label2id",
    "language_model_only",
    "layer_norm_epsilon",
    "logit_scale",
    "logits_scaling",
    "mamba_hidden_act",
    "max_length",
    "max_position_embedding",
    "max_position_embeddings",
    "max_seq_len",
    "max_window_layers",
    "min_length",
    "mla_scale_*",
    "mla_use_nope",
    "mlp_hidden_act",
    "model_max_length",
    "model_type",
    "moe_capacity",
    "moe_gate",
    "moe_use_aux_free",
    "n_group",
    "norm_topk_prob",
    "normalization_function",
    "num_expert_group",
    "original_max_position_embeddings",
    "output_attentions",
    "output_hidden_states",
    "output_router_logits",
    "partial_rotary_factor*",
    "pretraining_tp",
    "problem_type",
    "query_pre_attn_scalar",
    "rescale_prenorm_residual",
    "resid_pdrop",
    "residual_in_fp32",
    "return_dict",
    "rope_*",
    "rotary_*",
    "routed_scaling_factor",
    "router_aux_loss_coef*",
    "router_dtype",
    "router_jitter_noise",
    "router_z_loss_coef",
    "scale_attn_weights",
    "score_function",
    "scoring_func",
    "sep_token_id",
    "seq_aux",
    "seq_length",
    "summary_*",
    "task_specific_params",
    "time_step_*",
    "tokenizer_class",
    "topk_group",
    "topk_method",
    "torch_dtype",
    "torchscript",
    "transformers.js_config",
    "transformers_version",
    "unsloth_*",
    "use_bfloat16",
    "use_cache",
    "use_mamba_kernels",
    "vision_config",
    "zero_expert_type",
});

bool matches_key(std::string_view pattern, std::string_view key) {
  if (pattern.ends_with('*')) return key.starts_with(pattern.substr(0, pattern.size() - 1));
  return pattern.starts_with('*') ? key.ends_with(pattern.substr(1)) : key == pattern;
}

}  // namespace

std::vector<std::string> unused_keys(const ConfigValues& config) {
  std::vector<std::string> keys = config.unused();
  std::erase_if(keys, [](const std::string& key) {
    return std::any_of(kWithoutEffect.begin(), kWithoutEffect.end(),
                       [&](std::string_view pattern) { return matches_key(pattern, key); });
  });
  return keys;
}

}  // namespace tandem
