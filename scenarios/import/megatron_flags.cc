#include "scenarios/import/megatron_flags.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>

#include "scenarios/import/megatron_recompute.h"

namespace tandem {
namespace {

using Reason = std::pair<std::string_view, std::string_view>;

constexpr std::array kNotModelled = {
    Reason{"expert_tensor_parallel_size", "experts are divided as the other layers are"},
    Reason{"cp_comm_type", "keys and values go round while the products run (p2p)"},
    Reason{"distribute_saved_activations", "each device keeps its own activations"},
    Reason{"moe_shared_expert_overlap", "nothing overlaps with the exchanges of tokens"},
    Reason{"moe_router_fusion", "the router is a product and a softmax"},
    Reason{"deterministic_mode", "slower kernels that give equal results"},
    Reason{"clip_grad", "the norm of the gradients takes no time"},
    Reason{"log_params_norm", "the norm of the parameters takes no time"},
    Reason{"log_num_zeros_in_grad", "counting takes no time"},
    Reason{"check_for_nan_in_loss_and_grad", "the check takes no time"},
    Reason{"no_rope_fusion", "rotary embeddings are one kernel"},
    Reason{"no_bias_swiglu_fusion", "the gate and its activation are one kernel"},
    Reason{"no_bias_gelu_fusion", "see workload.stack: fusion"},
    Reason{"no_bias_dropout_fusion", "see workload.stack: fusion"},
    Reason{"attention_softmax_in_fp32", "scores have the type of the other activations"},
    Reason{"apply_query_key_layer_scaling", "the scale takes no time of its own"},
    Reason{"use_torch_fsdp2", "parameters are whole on each replica"},
    Reason{"delay_wgrad_compute", "gradients of weights follow those of inputs, before the next exchange of tokens"},
    Reason{"defer_embedding_wgrad_compute", "gradients of weights follow those of inputs"},
    Reason{"enable_cuda_graph", "see engine: graphs"},
    Reason{"external_cuda_graph", "see engine: graphs"},
    Reason{"cuda_graph_impl", "see engine: graphs"},
    Reason{"pipeline_model_parallel_split_rank", "stages have equal numbers of blocks"},
    Reason{"async_save", "checkpoints are not part of a step"},
    Reason{"rampup_batch_size", "every step has the global batch"},
    Reason{"decrease_batch_size_if_needed", "every step has the global batch"},
    Reason{"use_tp_pp_dp_mapping", "devices are numbered tensor, data, pipeline"},
    Reason{"tp_comm_bulk_wgrad", "only gradients of inputs overlap with products"},
    Reason{"tp_comm_bulk_dgrad", "only gradients of inputs overlap with products"},
};

// Flags that are read elsewhere, or that change no time: names or, with * at the end, beginnings of names.
constexpr auto kKnown = std::to_array<std::string_view>({
    "num_layers",
    "hidden_size",
    "ffn_hidden_size",
    "num_attention_heads",
    "kv_channels",
    "group_query_attention",
    "num_query_groups",
    "seq_length",
    "encoder_seq_length",
    "max_position_embeddings",
    "position_embedding_type",
    "rotary_*",
    "use_rotary_position_embeddings",
    "no_position_embedding",
    "rope_*",
    "use_rope_scaling",
    "normalization",
    "norm_epsilon",
    "swiglu",
    "squared_relu",
    "quick_geglu",
    "openai_gelu",
    "onnx_safe",
    "disable_bias_linear",
    "add_qkv_bias",
    "untie_embeddings_and_output_weights",
    "vocab_size",
    "padded_vocab_size",
    "make_vocab_size_divisible_by",
    "qk_layernorm",
    "num_experts",
    "moe_router_*",
    "moe_ffn_hidden_size",
    "moe_shared_expert_intermediate_size",
    "moe_layer_freq",
    "window_size",
    "window_attn_skip_freq",
    "mtp_num_layers",
    "mtp_loss_scaling_factor",
    "moe_grouped_gemm",
    "moe_use_legacy_grouped_gemm",
    "use_transformer_engine_op_fuser",
    "moe_permute_fusion",
    "moe_token_dispatcher_type",
    "moe_flex_dispatcher_backend",
    "moe_enable_deepep",
    "moe_expert_capacity_factor",
    "moe_pad_expert_input_to_capacity",
    "moe_token_drop_policy",
    "grad_reduce_in_bf16",
    "overlap_moe_expert_parallel_comm",
    "moe_aux_loss_coeff",
    "moe_z_loss_coeff",
    "moe_input_jitter_eps",
    "moe_per_layer_logging",
    "multi_latent_attention",
    "q_lora_rank",
    "kv_lora_rank",
    "qk_head_dim",
    "qk_pos_emb_head_dim",
    "v_head_dim",
    "mscale*",
    "peft_*",
    "micro_batch_size",
    "global_batch_size",
    "tensor_model_parallel_size",
    "pipeline_model_parallel_size",
    "num_layers_per_virtual_pipeline_stage",
    "num_virtual_stages_per_pipeline_rank",
    "pipeline_model_parallel_layout",
    "account_for_embedding_in_pipeline_split",
    "account_for_loss_in_pipeline_split",
    "decoder_first_pipeline_num_layers",
    "decoder_last_pipeline_num_layers",
    "recompute_granularity",
    "recompute_activations",
    "recompute_method",
    "recompute_num_layers",
    "recompute_modules",
    "moe_layer_recompute",
    "checkpoint_activations",
    "bf16",
    "fp8",
    "fp8_format",
    "fp8_recipe",
    "fp8_margin",
    "fp8_param_gather",
    "fp8_amax_*",
    "fp8_interval",
    "fp4",
    "fp4_format",
    "fp4_recipe",
    "gradient_accumulation_fusion",
    "no_gradient_accumulation_fusion",
    "tp_comm_overlap*",
    "no_masked_softmax_fusion",
    "cross_entropy_loss_fusion",
    "cross_entropy_fusion_impl",
    "fp16",
    "precision",
    "optimizer",
    "use_distributed_optimizer",
    "num_distributed_optimizer_instances",
    "cpu_offloading",
    "cpu_offloading_*",
    "optimizer_cpu_offload",
    "optimizer_offload_fraction",
    "use_custom_fsdp",
    "use_megatron_fsdp",
    "data_parallel_sharding_strategy",
    "overlap_param_gather",
    "context_parallel_size",
    "expert_model_parallel_size",
    "sequence_parallel",
    "no_scatter_gather_tensors_in_pipeline",
    "overlap_grad_reduce",
    "ddp_bucket_size",
    "attention_backend",
    "transformer_impl",
    "use_flash_attn",
    "attention_dropout",
    "hidden_dropout",
    "nnodes",
    "nproc_per_node",
    "node_rank",
    "master_addr",
    "master_port",
    "rdzv_*",
    "standalone",
    "max_restarts",
    "train_iters",
    "train_samples",
    "max_steps",
    "eval_*",
    "exit_*",
    "log_*",
    "tensorboard_*",
    "wandb_*",
    "timing_log_*",
    "save*",
    "load*",
    "ckpt_*",
    "dist_ckpt_*",
    "use_dist_ckpt",
    "no_save_*",
    "no_load_*",
    "finetune",
    "use_checkpoint_*",
    "use_persistent_ckpt_worker",
    "use_mcore_models",
    "use_legacy_models",
    "lr*",
    "min_lr",
    "weight_decay*",
    "start_weight_decay",
    "end_weight_decay",
    "override_*",
    "adam_*",
    "sgd_*",
    "init_method_*",
    "data_*",
    "train_data_path",
    "valid_data_path",
    "test_data_path",
    "vocab_file",
    "merge_file",
    "tokenizer_*",
    "split",
    "mmap_bin_files",
    "no_mmap_bin_files",
    "no_create_attention_mask_in_dataloader",
    "create_attention_mask_in_dataloader",
    "num_workers",
    "reset_*",
    "eod_mask_loss",
    "mock_data",
    "distributed_*",
    "seed",
    "manual_gc*",
    "rerun_*",
    "error_injection_*",
    "use_mup",
    "mup_*",
    "bert_*",
    "loss_scale*",
    "initial_loss_scale",
    "dataloader_type",
    "apply_layernorm_1p",
    "calculate_per_token_loss",
    "val_check_interval",
    "limit_val_batches",
    "no_bias_dropout",
    "bias_activation_fusion",
    "empty_unused_memory_level",
    "record_memory_history",
    // Printed only, or turned off by flags of other names.
    "world_size",
    "rank",
    "local_rank",
    "data_parallel_size",
    "params_dtype",
    "consumed_*",
    "curr_iteration",
    "iteration",
    "encoder_num_layers",
    "virtual_pipeline_model_parallel_size",
    "transformer_pipeline_model_parallel_size",
    "add_bias_linear",
    "add_position_embedding",
    "apply_rope_fusion",
    "bias_swiglu_fusion",
    "bias_gelu_fusion",
    "bias_dropout_fusion",
    "masked_softmax_fusion",
    "scatter_gather_tensors_in_pipeline",
    "yaml_cfg",
    "is_instruct_dataset",
    "onnx_safe",
    "accumulate_allreduce_grads_in_fp32",
    "main_grads_dtype",
    "main_params_dtype",
    "exp_avg_dtype",
    "exp_avg_sq_dtype",
    "grad_reduce_in_fp32",
    "iter_per_epoch",
    "img_*",
    "retro_*",
    "vision_*",
    "dino_*",
    "biencoder_*",
    "ict_*",
    "block_data_path",
    "classes_fraction",
    "titles_data_path",
    "query_in_block_prob",
    "short_seq_prob",
    "mask_*",
    "sample_rate",
    "patch_dim",
    "num_channels",
    "num_classes",
    "swin_*",
    "enable_one_logger",
    "one_logger_*",
    "inference_*",
    "output_bert_embeddings",
    "embedding_path",
    "evidence_data_path",
    "indexer_*",
    "per_split_data_args_path",
    "mscale_all_dim",
    "perform_initialization",
    "use_cpu_initialization",
    "sgd_momentum",
    "hysteresis",
    "min_loss_scale",
    "per_gpu_*",
    "straggler_*",
    "nccl_communicator_config_path",
    "hybrid_attention_ratio",
    "hybrid_mlp_ratio",
    "decoupled_*",
    "kitchen_*",
});

bool matches(std::string_view pattern, std::string_view name) {
  if (!pattern.ends_with('*')) return pattern == name;
  pattern.remove_suffix(1);
  return name.starts_with(pattern);
}

bool is_known(std::string_view name) {
  return std::any_of(kKnown.begin(), kKnown.end(),
                     [&](std::string_view pattern) { return !pattern.empty() && matches(pattern, name); });
}

// One list "[0,1]" with the number "*3" behind it.
bool expand_term(std::string_view term, std::size_t most, std::vector<bool>& values) {
  const std::size_t close = term.find(']');
  if (!term.starts_with('[') || close == std::string_view::npos) return false;
  std::vector<bool> items;
  for (const char c : term.substr(1, close - 1)) {
    if (c == ',') continue;
    if (c != '0' && c != '1') return false;
    items.push_back(c == '1');
  }
  std::size_t times = 1;
  std::string_view rest = term.substr(close + 1);
  if (!rest.empty()) {
    if (!rest.starts_with('*') || rest.size() > 6) return false;
    times = 0;
    for (const char c : rest.substr(1)) {
      if (c < '0' || c > '9') return false;
      times = times * 10 + static_cast<std::size_t>(c - '0');
    }
  }
  if (values.size() + items.size() * times > most) return false;
  for (; times > 0; --times) values.insert(values.end(), items.begin(), items.end());
  return true;
}

}  // namespace

namespace {

auto reason_of(std::string_view name) {
  return std::find_if(kNotModelled.begin(), kNotModelled.end(),
                      [&](const Reason& reason) { return reason.first == name; });
}

}  // namespace

bool is_unknown_argument(std::string_view name) {
  return reason_of(name) == kNotModelled.end() && !is_known(name);
}

std::optional<std::string> why_not_modelled(const Flag& flag) {
  const bool is_one = flag.value == "1";
  const auto found = reason_of(flag.name);
  if (found != kNotModelled.end()) {
    if (is_one && flag.name.ends_with("_size")) return std::nullopt;  // one device divides nothing
    return std::string(found->second);
  }
  if (const std::string kept = unknown_modules(flag); flag.name == "recompute_modules" && !kept.empty()) {
    return kept + ": kept, as other layers";
  }
  if (is_known(flag.name)) return std::nullopt;
  return "not known here; what it changes is left out";
}

std::string shown_flag(const Flag& flag) {
  std::string name = flag.name;
  std::replace(name.begin(), name.end(), '_', '-');
  const bool is_switch = flag.value.empty() || flag.value == "true" || flag.value == "True";
  return is_switch ? name : name + " " + flag.value;
}

bool expand_list(const std::string& text, std::size_t length, std::vector<bool>& values) {
  std::string plain;
  for (const char c : text) {
    if (c != '(' && c != ')' && c != ' ' && c != '"' && c != '\'') plain += c;
  }
  std::string_view rest = plain;
  while (!rest.empty()) {
    const std::size_t plus = std::min(rest.find('+'), rest.size());
    if (!expand_term(rest.substr(0, plus), length, values)) return false;
    rest.remove_prefix(std::min(plus + 1, rest.size()));
  }
  return values.size() == length;
}

}  // namespace tandem
