#include "scenarios/import/megatron.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "scenarios/import/layer_expressions.h"
#include "scenarios/import/megatron_experts.h"
#include "scenarios/import/megatron_flags.h"
#include "scenarios/import/megatron_offload.h"
#include "scenarios/import/megatron_recompute.h"
#include "scenarios/import/megatron_stages.h"
#include "scenarios/import/megatron_windows.h"
#include "scenarios/import/models/decoder_families.h"

namespace tandem {
namespace {

using Norms = BlockSpec::Norms;

constexpr std::int64_t kMostPredictors = 16;
constexpr std::int64_t kMostOfBucket = 1'000'000'000'000;
constexpr std::int64_t kGpt2Vocabulary = 50257;
constexpr std::int64_t kBertVocabulary = 30522;

// NeMo's names for Megatron-LM's flags: "model.config.num_layers", "trainer.strategy.tensor_model_parallel_size".
Flags renamed(const Flags& flags) {
  static const std::map<std::string, std::string> names{
      {"num_moe_experts", "num_experts"},
      {"num_layers_in_first_pipeline_stage", "decoder_first_pipeline_num_layers"},
      {"num_layers_in_last_pipeline_stage", "decoder_last_pipeline_num_layers"},
      {"devices", "nproc_per_node"},
      {"num_nodes", "nnodes"},
      {"virtual_pipeline_model_parallel_size", "num_virtual_stages_per_pipeline_rank"},
      {"nproc-per-node", "nproc_per_node"}};
  Flags result(flags.file());
  result.environment = flags.environment;
  result.is_printed = flags.is_printed;
  result.notes = flags.notes;
  for (Flag flag : flags.all()) {
    const std::size_t dot = flag.name.rfind('.');
    const bool is_nemo = dot != std::string::npos;
    if (is_nemo) flag.name = flag.name.substr(dot + 1);
    if (is_nemo && flag.name == "add_bias_linear") {
      flag.name = "disable_bias_linear";
      flag.value = flag.value == "False" || flag.value == "false" ? "" : "false";
    }
    if (const auto other = names.find(flag.name); other != names.end()) flag.name = other->second;
    result.add(std::move(flag));
  }
  return result;
}

class MegatronReader {
 public:
  explicit MegatronReader(const Flags& flags) : flags_(renamed(flags)) {}

  MegatronJob read() {
    job_.assumed = flags_.notes;
    check_kind();
    check_switches(flags_);
    read_sizes();
    read_blocks();
    read_parallel();
    read_training();
    judge_flags();
    return std::move(job_);
  }

 private:
  std::int64_t positive(std::string_view name) const {
    const auto value = flags_.number(name);
    if (value && *value < 1) flags_.fail(name, "must be at least 1, found 0");
    if (!value) {
      flags_.fail(name, fmt::format("is missing, and the size of the model depends on it{}",
                                    flags_.notes.empty() ? "" : "; " + flags_.notes.front()));
    }
    return at_most(name, *value);
  }
  std::int64_t positive(std::string_view name, std::int64_t otherwise) const {
    return flags_.find(name) == nullptr ? otherwise : positive(name);
  }
  std::int64_t at_most(std::string_view name, std::int64_t value) const {
    if (value <= (name == "ddp_bucket_size" ? kMostOfBucket : 1 << 24)) return value;
    flags_.fail(name, fmt::format("{} is more than any model has", value));
  }

  void check_kind() {
    const std::string file = std::filesystem::path(flags_.file()).filename().string();
    const auto in_values = [&](std::string_view word) {
      return std::any_of(flags_.all().begin(), flags_.all().end(), [&](const Flag& flag) {
        const bool is_data = flag.name == "data_path" || flag.name == "vocab_file" || flag.name == "tokenizer_type";
        return is_data && flag.value.find(word) != std::string::npos;
      });
    };
    for (const char* other : {"t5", "retro", "vision", "vit_", "multimodal", "mamba", "hybrid"}) {
      if (file.starts_with(other)) {
        flags_.fail("num_layers", fmt::format("arguments of '{}': tandem reads those of GPT and BERT", other));
      }
    }
    for (const char* flag : {"hybrid_override_pattern", "hybrid_layer_pattern", "encoder_num_layers",
                             "decoder_num_layers", "decoder_seq_length"}) {
      // Megatron-LM itself sets encoder_num_layers for a GPT, and prints it.
      if (flags_.is_printed && std::string_view(flag) == "encoder_num_layers") continue;
      if (flags_.find(flag) != nullptr) flags_.fail(flag, "is of a model that is no GPT or BERT; tandem reads those");
    }
    is_bert_ = file.starts_with("bert") || in_values("bert") || in_values("Bert") ||
               flags_.find("bert_no_binary_head") != nullptr;
    const bool is_nemo = flags_.find("max_steps") != nullptr && flags_.find("train_iters") == nullptr;
    if (is_nemo) job_.assumed.emplace_back("what NeMo's recipe sets beside these arguments has Megatron-LM's defaults");
    job_.assumed.push_back(is_bert_ ? "a BERT (by its name or its data)" : "a GPT");
  }

  void read_sizes() {
    TransformerSpec& spec = job_.spec;
    spec.name = std::filesystem::path(flags_.file()).stem().string();
    spec.source = flags_.file() + " (arguments of Megatron-LM)";
    spec.is_causal = !is_bert_;
    spec.hidden = positive("hidden_size");
    spec.tokens = positive("seq_length", positive("encoder_seq_length", 0));
    if (spec.tokens == 0) spec.tokens = positive("seq_length");
    std::string norm = flags_.text("normalization");
    std::transform(norm.begin(), norm.end(), norm.begin(), [](unsigned char c) { return std::tolower(c); });
    spec.norm = norm == "rmsnorm" ? NormKind::rms : NormKind::layer;
    complete_excerpt();
    if (has_learned_positions()) {
      spec.more_entries = std::max(spec.tokens, positive("max_position_embeddings", spec.tokens));
    }
    if (is_bert_) spec.more_entries += 2;
    spec.tied = flags_.find("untie_embeddings_and_output_weights") == nullptr ||
                !flags_.is_on("untie_embeddings_and_output_weights");
    spec.dropout =
        flags_.text("hidden_dropout", "0.1") == "0.0" || flags_.text("hidden_dropout", "0.1") == "0" ? 0 : 0.1;
    job_.tensor = positive("tensor_model_parallel_size", 1);
    spec.vocabulary = vocabulary();
    if (is_bert_) {
      spec.head = TransformerSpec::Head::masked_language;
      spec.head_bias = true;
      spec.pooler.present = !flags_.is_on("bert_no_binary_head");
      if (spec.pooler.present) spec.more_parameters = 2 * spec.hidden + 2;
    }
  }

  bool has_learned_positions() const {
    const bool is_off = flags_.is_on("use_rotary_position_embeddings") || flags_.is_on("no_position_embedding");
    return flags_.text("position_embedding_type", "learned_absolute") == "learned_absolute" && !is_off;
  }

  // A program prints all of its arguments, so that a block without one is an excerpt, and the argument need not have
  // its usual value.
  void complete_excerpt() {
    if (!flags_.is_printed || job_.spec.norm != NormKind::rms || !flags_.is_on("swiglu")) return;
    std::vector<std::string> left_out;
    const auto complete = [&](const char* name, Flag flag) {
      if (flags_.find(name) != nullptr || flags_.find(flag.name) != nullptr) return;
      left_out.emplace_back(name);
      flags_.add(std::move(flag));
    };
    complete("position_embedding_type", {.name = "position_embedding_type", .value = "rope"});
    complete("untie_embeddings_and_output_weights", {.name = "untie_embeddings_and_output_weights", .value = ""});
    complete("add_bias_linear", {.name = "disable_bias_linear", .value = ""});
    if (left_out.empty()) return;
    job_.assumed.push_back(
        fmt::format("the block leaves out {}: taken as rotary positions, separate embeddings and no biases, which "
                    "models with RMSNorm and SwiGLU have",
                    fmt::join(left_out, ", ")));
  }

  // Megatron-LM pads it to a multiple for each tensor-parallel device.
  std::int64_t vocabulary() {
    if (const auto padded = flags_.number("padded_vocab_size")) return at_most("padded_vocab_size", *padded);
    const std::int64_t multiple = positive("make_vocab_size_divisible_by", 128) * job_.tensor;
    std::int64_t words = positive("vocab_size", 0);
    if (words == 0) {
      words = is_bert_ ? kBertVocabulary : kGpt2Vocabulary;
      job_.assumed.push_back(
          fmt::format("a vocabulary of {} words, as the {} has: the tokenizer is not read (--vocab-size)", words,
                      is_bert_ ? "uncased BERT" : "GPT-2"));
    }
    return (words + multiple - 1) / multiple * multiple;
  }

  AttentionSpec attention() const {
    AttentionSpec attention;
    attention.heads = positive("num_attention_heads");
    attention.key_heads = attention.heads;
    if (flags_.is_on("group_query_attention")) attention.key_heads = positive("num_query_groups", 1);
    if (flags_.find("kv_channels") == nullptr && !flags_.is_on("multi_latent_attention")) {
      divides(job_.spec.hidden, attention.heads, "num_attention_heads", "of --hidden-size");
    }
    attention.size = positive("kv_channels", std::max<std::int64_t>(1, job_.spec.hidden / attention.heads));
    const bool has_bias = !flags_.is_on("disable_bias_linear");
    attention.output_bias = has_bias;
    attention.query_bias = attention.key_bias = attention.value_bias = has_bias || flags_.is_on("add_qkv_bias");
    attention.rotary = flags_.text("position_embedding_type").find("rope") != std::string::npos ||
                       flags_.is_on("use_rotary_position_embeddings");
    if (flags_.is_on("qk_layernorm")) {
      attention.head_norm =
          job_.spec.norm == NormKind::rms ? AttentionSpec::HeadNorm::per_head : AttentionSpec::HeadNorm::bias_per_head;
    }
    if (!flags_.is_on("multi_latent_attention")) return attention;
    AttentionSpec::Latent latent;
    latent.query_rank = flags_.number("q_lora_rank", 0);
    latent.rank = positive("kv_lora_rank", 512);
    latent.rotary = positive("qk_pos_emb_head_dim", 64);
    attention.size = positive("qk_head_dim", 128) + latent.rotary;
    attention.value_size = positive("v_head_dim", 128);
    attention.latent = latent;
    attention.head_norm = AttentionSpec::HeadNorm::none;
    return attention;
  }

  void read_blocks() {
    const std::int64_t layers = positive("num_layers");
    if (layers > 4096) flags_.fail("num_layers", fmt::format("{} is more than any model has", layers));
    BlockSpec block{.attention = attention()};
    FeedForwardSpec& feed = block.feed_forward;
    const std::int64_t hidden = job_.spec.hidden;
    feed.gated = flags_.is_on("swiglu");
    feed.activation = feed.gated                     ? Activation::silu
                      : flags_.is_on("squared_relu") ? Activation::relu
                                                     : Activation::gelu;
    feed.width =
        positive("ffn_hidden_size", feed.gated ? std::max<std::int64_t>(64, 4 * hidden * 2 / 3 / 64 * 64) : 4 * hidden);
    feed.up_bias = feed.down_bias = !flags_.is_on("disable_bias_linear");
    std::vector<BlockSpec> blocks(static_cast<std::size_t>(layers), block);
    if (const std::int64_t count = flags_.number("num_experts", 0); count > 1) {
      FeedForwardSpec::Experts experts;
      experts.count = std::min<std::int64_t>(at_most("num_experts", count), 16384);
      experts.used = positive("moe_router_topk", 2);
      if (experts.used > experts.count)
        flags_.fail("moe_router_topk", fmt::format("is more than there are experts: {}", count));
      experts.width = positive("moe_ffn_hidden_size", feed.width);
      experts.shared_width = flags_.number("moe_shared_expert_intermediate_size", 0);
      experts.has_router_bias = flags_.is_on("moe_router_enable_expert_bias");
      experts.has_bias = feed.up_bias;
      const std::vector<bool> pattern = expert_pattern(layers);
      for (std::size_t i = 0; i < blocks.size(); ++i) {
        if (pattern[i]) blocks[i].feed_forward.experts = experts;
      }
    }
    set_windows(flags_, blocks);
    job_.spec.blocks = runs_of(blocks);
    job_.spec.predictors = flags_.number("mtp_num_layers", 0);
    if (job_.spec.predictors > kMostPredictors) {
      flags_.fail("mtp_num_layers", fmt::format("can be at most {}", kMostPredictors));
    }
  }

  // Every so many layers, or an expression such as ([0]*3+[1]*12).
  std::vector<bool> expert_pattern(std::int64_t layers) const {
    const std::string text = flags_.text("moe_layer_freq", "1");
    std::vector<bool> pattern;
    if (text.find('[') == std::string::npos) {
      const std::int64_t every = positive("moe_layer_freq", 1);
      for (std::int64_t i = 0; i < layers; ++i) pattern.push_back(i % every == 0);
      return pattern;
    }
    if (!expand_list(text, static_cast<std::size_t>(layers), pattern)) {
      flags_.fail("moe_layer_freq", fmt::format("'{}' does not give 0 or 1 for each of {} layers", text, layers));
    }
    return pattern;
  }

  void divides(std::int64_t total, std::int64_t parts, std::string_view flag, const char* what) const {
    if (total % parts != 0) flags_.fail(flag, fmt::format("{} does not divide {} {}", parts, total, what));
  }

  void read_parallel() {
    job_.pipeline = positive("pipeline_model_parallel_size", 1);
    job_.context = positive("context_parallel_size", 1);
    divides(positive("num_attention_heads"), job_.tensor, "tensor_model_parallel_size", "heads");
    if (job_.context > 1) job_.context_exchange = context_exchange_of(flags_, job_.tensor, job_.context, job_.left_out);
    if (flags_.is_on("use_tp_pp_dp_mapping")) job_.axis_order = AxisOrder::tensor_pipeline_data;
    job_.expert = positive("expert_model_parallel_size", 1);
    job_.expert_tensor = tensor_of_experts(flags_, job_.tensor, job_.left_out);
    if (job_.expert > 1) divides(flags_.number("num_experts", 1), job_.expert, "expert_model_parallel_size", "experts");
    const MegatronStages stages = read_stages(flags_, job_.pipeline, positive("num_layers"), job_.spec.predictors);
    job_.virtual_stages = stages.of_device;
    job_.stage_blocks = stages.blocks;
    job_.nodes = flags_.number("nnodes");
    job_.devices = flags_.number("nproc_per_node");
    job_.world = flags_.number("world_size");
    check_world();
    job_.micro_batch = positive("micro_batch_size", 1);
    if (flags_.find("global_batch_size") != nullptr) job_.global_batch = positive("global_batch_size");
  }

  void check_world() const {
    if (!job_.world) return;
    if (*job_.world < 1) flags_.fail("world_size", "must be at least 1, found 0");
    at_most("world_size", *job_.world);
    const std::int64_t data = flags_.number("data_parallel_size", 0);
    const std::int64_t product = data * job_.tensor * job_.pipeline * job_.context;
    if (data == 0 || product == *job_.world) return;
    flags_.fail("data_parallel_size",
                fmt::format("data {} x tensor {} x pipeline {} x context {} are {} devices, and "
                            "world_size is {}",
                            data, job_.tensor, job_.pipeline, job_.context, product, *job_.world));
  }

  void read_training() {
    if (flags_.is_on("bf16") && flags_.is_on("fp16")) flags_.fail("fp16", "cannot be given together with --bf16");
    job_.dtype = flags_.is_on("bf16") ? "bf16" : flags_.is_on("fp16") ? "f16" : "f32";
    if (flags_.find("bf16") == nullptr && flags_.find("fp16") == nullptr &&
        flags_.text("precision").find("bf16") != std::string::npos)
      job_.dtype = "bf16";
    job_.optimizer = flags_.text("optimizer", "adam") == "sgd" ? "momentum" : "adam";
    job_.overlap = flags_.is_on("overlap_grad_reduce");
    job_.sequence_parallel = flags_.is_on("sequence_parallel") && job_.tensor > 1;
    job_.distributed_optimizer = flags_.is_on("use_distributed_optimizer");
    read_sharding();
    job_.overlap_gather = job_.distributed_optimizer && flags_.is_on("overlap_param_gather");
    job_.scatter_gather = !flags_.is_on("no_scatter_gather_tensors_in_pipeline");
    job_.recompute = recomputation_of(flags_);
    job_.offload = offload_of(flags_, job_.shard_parameters, job_.left_out);
    if (job_.optimizer == "adam") job_.moments = moment_types_of(flags_, job_.left_out);
    const std::string backend = flags_.text("attention_backend");
    const bool is_local = flags_.text("transformer_impl") == "local" && !flags_.is_on("use_flash_attn");
    job_.keeps_scores = backend == "unfused" || backend == "local" || (is_local && backend.empty());
    read_precision();
    read_experts();
    job_.overlaps_experts = flags_.is_on("overlap_moe_expert_parallel_comm") && job_.expert > 1;
    if (job_.overlaps_experts && job_.shard_parameters) {
      job_.overlaps_experts = false;
      job_.left_out.push_back("--overlap-moe-expert-parallel-comm: not where parameters are kept in pieces");
    }
    job_.reduces_in_f32 = !flags_.is_on("grad_reduce_in_bf16");
    job_.fuses_loss = flags_.is_on("cross_entropy_loss_fusion");
    job_.overlaps_products = flags_.is_on("tp_comm_overlap") && job_.tensor > 1;
    job_.fuses_softmax = !flags_.is_on("no_masked_softmax_fusion");
    job_.adds_in_products = !flags_.is_on("no_gradient_accumulation_fusion");
    constexpr std::int64_t kElementBytes = 4, kUsualBucket = 40'000'000;
    job_.bucket_bytes = kElementBytes * positive("ddp_bucket_size", kUsualBucket);
    for (const auto& [name, value] : flags_.environment) {
      if (name == "NCCL_ALGO" || name == "NCCL_PROTO") job_.nccl[name] = value;
    }
  }

  void read_sharding() {
    const bool is_sharded = flags_.is_on("use_megatron_fsdp") || flags_.is_on("use_custom_fsdp");
    const std::string what = flags_.text("data_parallel_sharding_strategy", "no_shard");
    if (is_sharded && what != "no_shard") {
      job_.shard_parameters = what == "optim_grads_params" && job_.pipeline == 1;
      job_.distributed_optimizer = !job_.shard_parameters;
      if (what == "optim_grads_params" && job_.pipeline > 1) {
        job_.left_out.push_back(
            "--data-parallel-sharding-strategy optim_grads_params: in a pipeline, parameters are whole during a step");
      }
    }
    if (job_.distributed_optimizer || job_.shard_parameters) {
      job_.replicate = positive("num_distributed_optimizer_instances", 1);
    }
  }

  void read_experts() {
    const bool has_experts =
        std::ranges::any_of(job_.spec.blocks, [](const Blocks& blocks) { return !!blocks.block.feed_forward.experts; });
    if (has_experts) job_.experts = read_dispatched_experts(flags_, job_.left_out);
  }

  void read_precision() {
    const std::string recipe = flags_.text("fp8_recipe", "delayed");
    if (flags_.is_on("fp8_format") || flags_.is_on("fp8")) {
      job_.precision = recipe == "mxfp8" ? "mxfp8" : "fp8";
      const bool is_known = recipe == "delayed" || recipe == "tensorwise" || recipe == "blockwise";
      if (is_known) {
        job_.recipe = recipe;
      } else if (recipe != "mxfp8") {
        job_.left_out.push_back(fmt::format("--fp8-recipe {}: a scale for each tensor", recipe));
      }
    }
    if (flags_.is_on("fp4_format") || flags_.is_on("fp4")) job_.precision = "nvfp4";
    job_.gathers_quantised = flags_.is_on("fp8_param_gather") && (job_.distributed_optimizer || job_.shard_parameters);
  }

  void judge_flags() {
    for (const Flag& flag : flags_.all()) {
      const bool needs_parts = flag.name.starts_with("tp_comm_");
      if (!flags_.is_on(flag.name) || (needs_parts && job_.tensor == 1)) continue;
      if (flags_.is_printed && is_unknown_argument(flag.name)) continue;  // in a note, all together
      if (const auto why = why_not_modelled(flag))
        job_.left_out.push_back(fmt::format("--{}: {}", shown_flag(flag), *why));
    }
  }

  Flags flags_;
  MegatronJob job_;
  bool is_bert_ = false;
};

}  // namespace

MegatronJob read_megatron(const Flags& flags) {
  return MegatronReader(flags).read();
}

}  // namespace tandem
