#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "scenarios/import/megatron_flags.h"

namespace tandem {
namespace {

// Those that Megatron-LM's megatron/training/arguments.py has as store_true or store_false.
constexpr auto kSwitches = std::to_array<std::string_view>({
    "account_for_embedding_in_pipeline_split",
    "account_for_loss_in_pipeline_split",
    "add_qkv_bias",
    "apply_layernorm_1p",
    "apply_query_key_layer_scaling",
    "async_save",
    "attention_softmax_in_fp32",
    "bert_no_binary_head",
    "bf16",
    "calculate_per_token_loss",
    "checkpoint_activations",
    "cross_entropy_loss_fusion",
    "decrease_batch_size_if_needed",
    "defer_embedding_wgrad_compute",
    "delay_wgrad_compute",
    "deterministic_mode",
    "disable_bias_linear",
    "distribute_saved_activations",
    "finetune",
    "fp16",
    "fp8_param_gather",
    "grad_reduce_in_bf16",
    "group_query_attention",
    "log_num_zeros_in_grad",
    "log_params_norm",
    "mock_data",
    "moe_enable_deepep",
    "moe_grouped_gemm",
    "moe_layer_recompute",
    "moe_pad_expert_input_to_capacity",
    "moe_per_layer_logging",
    "moe_permute_fusion",
    "moe_router_enable_expert_bias",
    "moe_router_fusion",
    "moe_router_pre_softmax",
    "moe_shared_expert_overlap",
    "moe_use_legacy_grouped_gemm",
    "multi_latent_attention",
    "no_bias_dropout_fusion",
    "no_bias_gelu_fusion",
    "no_bias_swiglu_fusion",
    "no_gradient_accumulation_fusion",
    "no_masked_softmax_fusion",
    "no_position_embedding",
    "no_rope_fusion",
    "no_scatter_gather_tensors_in_pipeline",
    "openai_gelu",
    "optimizer_cpu_offload",
    "overlap_grad_reduce",
    "overlap_moe_expert_parallel_comm",
    "overlap_param_gather",
    "qk_layernorm",
    "quick_geglu",
    "recompute_activations",
    "sequence_parallel",
    "squared_relu",
    "swiglu",
    "tp_comm_overlap",
    "untie_embeddings_and_output_weights",
    "use_custom_fsdp",
    "use_distributed_optimizer",
    "use_flash_attn",
    "use_legacy_models",
    "use_mcore_models",
    "use_megatron_fsdp",
    "use_precision_aware_optimizer",
    "use_rope_scaling",
    "use_rotary_position_embeddings",
    "use_torch_fsdp2",
    "use_tp_pp_dp_mapping",
    "use_transformer_engine_op_fuser",
});

// Also words that configurations and printed arguments have for a switch, and variables that nobody set.
bool may_follow_switch(std::string_view value) {
  constexpr std::array<std::string_view, 7> kWords{"", "true", "True", "false", "False", "None", "null"};
  return std::ranges::count(kWords, value) > 0 || value.find('$') != std::string_view::npos;
}

}  // namespace

void check_switches(const Flags& flags) {
  for (const Flag& flag : flags.all()) {
    if (may_follow_switch(flag.value) || std::ranges::count(kSwitches, flag.name) == 0) continue;
    flags.fail(flag.name, fmt::format("takes no value, or true or false in a configuration; found '{}'", flag.value));
  }
}

}  // namespace tandem
