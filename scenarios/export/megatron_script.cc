// Arguments of NVIDIA/Megatron-LM as megatron/training/arguments.py has them (commit 000c4ac2), with what its
// validate_args() refuses; layouts of pipelines as megatron/core/transformer/pipeline_parallel_layer_layout.py reads
// them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <string_view>

#include "scenarios/export/job_writer.h"
#include "scenarios/import/megatron_offload.h"
#include "scenarios/import/megatron_stages.h"
#include "scenarios/import/shell/quoted_word.h"
#include "scenarios/job/tasks.h"
#include "scenarios/scenario/shared_parts.h"
#include "topologies/base/strict_yaml.h"

namespace tandem {
namespace {

constexpr std::int64_t kUsualMultiple = 128;  // --make-vocab-size-divisible-by
constexpr std::int64_t kElementBytes = 4;     // of --ddp-bucket-size

// Arguments that belong together, as a variable of the script.
class Arguments {
 public:
  explicit Arguments(std::string name) : name_(std::move(name)) {}

  Arguments& add(std::string_view flag) { return line(fmt::format("--{}", flag)); }
  Arguments& add(std::string_view flag, std::int64_t number) { return line(fmt::format("--{} {}", flag, number)); }
  Arguments& add(std::string_view flag, std::string_view word) {
    const bool is_plain = word.find_first_of("()*|[] ") == std::string_view::npos;
    return line(is_plain ? fmt::format("--{} {}", flag, word) : fmt::format("--{} '{}'", flag, word));
  }
  Arguments& add_if(bool is_on, std::string_view flag) { return is_on ? add(flag) : *this; }
  template <typename Value>
  Arguments& add_if(bool is_on, std::string_view flag, Value value) {
    return is_on ? add(flag, value) : *this;
  }

  Arguments& add_list(std::string_view flag, const std::vector<std::string>& words) {
    return line(fmt::format("--{} {}", flag, fmt::join(words, " ")));
  }

  std::string text() const { return fmt::format("{}=(\n  {}\n)\n", name_, fmt::join(lines_, "\n  ")); }
  std::string use() const { return fmt::format("\"${{{}[@]}}\"", name_); }

 private:
  Arguments& line(std::string text) {
    lines_.push_back(std::move(text));
    return *this;
  }

  std::string name_;
  std::vector<std::string> lines_{};
};

// "([0]*3+[1]*58)"
std::string pattern_of(const std::vector<bool>& values) {
  std::vector<std::string> runs;
  for (std::size_t first = 0, end = 0; first < values.size(); first = end) {
    for (end = first + 1; end < values.size() && values[end] == values[first];) ++end;
    runs.push_back(fmt::format("[{}]*{}", values[first] ? 1 : 0, end - first));
  }
  return fmt::format("({})", fmt::join(runs, "+"));
}

// "Et*3|(t*4|)*6t*3mL": stages with so many blocks, of which the last ones predict further tokens.
std::string layout_text(const std::vector<int>& blocks, std::int64_t predictors) {
  const auto letters = [](std::int64_t count) {
    return count == 0 ? std::string() : count == 1 ? std::string("t") : fmt::format("t*{}", count);
  };
  std::string text = "E" + letters(blocks.front()) + "|";
  for (std::size_t first = 1, end = 1; first + 1 < blocks.size(); first = end) {
    for (end = first + 1; end + 1 < blocks.size() && blocks[end] == blocks[first];) ++end;
    const std::string stage = letters(blocks[first]) + "|";
    text += end - first == 1 ? stage : fmt::format("({})*{}", stage, end - first);
  }
  text += letters(blocks.back() - predictors);
  if (predictors > 0) text += predictors == 1 ? "m" : fmt::format("m*{}", predictors);
  return text + "L";
}

// Other keys of `engine.nccl` are no variables of NCCL.
bool is_variable(std::string_view name) {
  const auto is_of_name = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; };
  return name.starts_with("NCCL_") && std::ranges::all_of(name, is_of_name);
}

class MegatronScript {
 public:
  explicit MegatronScript(const JobToWrite& job)
      : job_(job),
        model_(job.model),
        layout_(job.layout),
        layers_(job.layers),
        has_experts_(std::ranges::any_of(model_.blocks, is_routed)) {}

  std::string text(const std::vector<std::string>& comments) {
    check_limits_of_megatron(job_);
    write_model();
    write_attention();
    write_feed_forward();
    write_layout();
    write_replicas();
    write_training();
    write_kernels();
    std::string text = "#!/bin/bash\n";
    for (const std::string& comment : comments) text += "# " + comment + "\n";
    text += environment();
    for (const Arguments* one : {&sizes_, &parallel_, &training_}) text += one->text();
    text += fmt::format("torchrun --nnodes {} --nproc-per-node {} pretrain_gpt.py {} {} {} \"$@\"\n",
                        training_workers(job_.scenario), job_.scenario.devices.per_worker, sizes_.use(),
                        parallel_.use(), training_.use());
    return text;
  }

 private:
  static bool is_routed(const Blocks& blocks) { return blocks.block.feed_forward.experts.has_value(); }

  bool divides_optimizer() const { return layout_.distributed_optimizer && !layout_.shard_parameters; }
  bool overlaps_gather() const { return divides_optimizer() && layout_.overlap_gather; }

  void write_model() {
    const bool learns_positions = model_.more_entries > 0;
    const bool is_rotary = model_.blocks.front().block.attention->rotary;
    sizes_.add("num-layers", std::ssize(model_.blocks));
    sizes_.add("hidden-size", model_.hidden);
    sizes_.add("seq-length", model_.tokens);
    sizes_.add("max-position-embeddings", std::max(model_.tokens, model_.more_entries));
    sizes_.add("position-embedding-type", learns_positions ? "learned_absolute" : is_rotary ? "rope" : "none");
    sizes_.add("normalization", model_.norm == NormKind::rms ? "RMSNorm" : "LayerNorm");
    sizes_.add("vocab-size", model_.vocabulary).add("make-vocab-size-divisible-by", multiple_of_words());
    sizes_.add_if(!model_.tied, "untie-embeddings-and-output-weights");
    if (model_.dropout == 0) sizes_.add("attention-dropout", "0.0").add("hidden-dropout", "0.0");
    sizes_.add_if(model_.predictors > 0, "mtp-num-layers", model_.predictors);
  }

  // A power of two that keeps the vocabulary as it is, where devices have equal parts of it.
  std::int64_t multiple_of_words() const {
    std::int64_t multiple = kUsualMultiple;
    while (multiple > 1 && model_.vocabulary % (multiple * layout_.tensor) != 0) multiple /= 2;
    return multiple;
  }

  void write_attention() {
    const AttentionSpec& attention = *model_.blocks.front().block.attention;
    sizes_.add("num-attention-heads", attention.heads);
    const bool has_bias = attention.output_bias;
    sizes_.add_if(!has_bias, "disable-bias-linear").add_if(!has_bias && attention.query_bias, "add-qkv-bias");
    sizes_.add_if(attention.head_norm != AttentionSpec::HeadNorm::none, "qk-layernorm");
    if (const auto& latent = attention.latent) {
      sizes_.add("multi-latent-attention").add_if(latent->query_rank > 0, "q-lora-rank", latent->query_rank);
      sizes_.add("kv-lora-rank", latent->rank).add("qk-head-dim", attention.size - latent->rotary);
      sizes_.add("qk-pos-emb-head-dim", latent->rotary).add("v-head-dim", attention.value_size);
    } else {
      sizes_.add_if(attention.size * attention.heads != model_.hidden, "kv-channels", attention.size);
      const bool is_grouped = attention.key_heads != attention.heads;
      sizes_.add_if(is_grouped, "group-query-attention").add_if(is_grouped, "num-query-groups", attention.key_heads);
    }
    write_windows();
  }

  void write_windows() {
    std::vector<bool> has_window;
    std::int64_t window = 0;
    for (const Blocks& blocks : model_.blocks) {
      has_window.push_back(blocks.block.attention->window > 0);
      window = std::max(window, blocks.block.attention->window);
    }
    if (window == 0) return;
    sizes_.add("window-size", fmt::format("{},0", window - 1));
    if (std::ranges::count(has_window, false) > 0) sizes_.add("window-attn-skip-freq", pattern_of(has_window));
  }

  void write_feed_forward() {
    const auto routed = std::ranges::find_if(model_.blocks, is_routed);
    const auto dense = std::ranges::find_if_not(model_.blocks, is_routed);
    const FeedForwardSpec& feed = model_.blocks.front().block.feed_forward;
    sizes_.add_if(feed.gated, "swiglu").add_if(feed.activation == Activation::relu, "squared-relu");
    const std::int64_t width =
        dense != model_.blocks.end() ? dense->block.feed_forward.width : routed->block.feed_forward.experts->width;
    sizes_.add("ffn-hidden-size", width);
    if (!has_experts_) return;
    const FeedForwardSpec::Experts& experts = *routed->block.feed_forward.experts;
    sizes_.add("num-experts", experts.count).add("moe-router-topk", experts.used);
    sizes_.add("moe-ffn-hidden-size", experts.width);
    sizes_.add_if(experts.shared_width > 0, "moe-shared-expert-intermediate-size", experts.shared_width);
    sizes_.add_if(experts.has_router_bias, "moe-router-enable-expert-bias");
    if (dense == model_.blocks.end()) return;
    std::vector<bool> pattern;
    for (const Blocks& blocks : model_.blocks) pattern.push_back(is_routed(blocks));
    sizes_.add("moe-layer-freq", pattern_of(pattern));
  }

  void write_layout() {
    parallel_.add("tensor-model-parallel-size", layout_.tensor);
    parallel_.add("pipeline-model-parallel-size", layout_.pipeline);
    write_stages();
    parallel_.add_if(layout_.axis_order == AxisOrder::tensor_pipeline_data, "use-tp-pp-dp-mapping");
    parallel_.add("context-parallel-size", layout_.context);
    parallel_.add_if(layout_.context > 1, "cp-comm-type", comm_type_of(layout_.context_exchange));
    parallel_.add_if(layers_.sequence_parallel && layout_.tensor > 1, "sequence-parallel");
    parallel_.add_if(!layout_.scatter_gather, "no-scatter-gather-tensors-in-pipeline");
    parallel_.add_if(layers_.overlap_products && layout_.tensor > 1, "tp-comm-overlap");
    if (!has_experts_) return;
    parallel_.add("expert-model-parallel-size", layout_.expert);
    parallel_.add("expert-tensor-parallel-size", layout_.expert_parts());
    write_dispatch();
    parallel_.add_if(layout_.overlap_experts, "overlap-moe-expert-parallel-comm");
    parallel_.add_if(layout_.overlap_shared_expert, "moe-shared-expert-overlap");
  }

  void write_stages() {
    const std::vector<int>& blocks = layout_.stage_blocks;
    const bool are_equal = std::ranges::adjacent_find(blocks, std::ranges::not_equal_to()) == blocks.end();
    // Layers that predict further tokens are not among those that Megatron-LM divides equally.
    if (layout_.stages() > 1 && (!are_equal || model_.predictors > 0)) {
      std::vector<int> all = blocks;
      if (all.empty()) {
        const auto of_model = static_cast<int>(std::ssize(model_.blocks) + model_.predictors);
        all.assign(static_cast<std::size_t>(layout_.stages()), of_model / layout_.stages());
      }
      if (all.back() < model_.predictors) {
        job_.refuse("strategy.stage_blocks",
                    fmt::format("Megatron-LM has all {} blocks that predict further tokens in one stage, and the last "
                                "one has {} blocks",
                                model_.predictors, all.back()));
      }
      parallel_.add("pipeline-model-parallel-layout", layout_text(all, model_.predictors));
    } else {
      parallel_.add_if(layout_.virtual_stages > 1, "num-virtual-stages-per-pipeline-rank", layout_.virtual_stages);
    }
  }

  void write_dispatch() {
    const ExpertSettings& experts = layers_.experts;
    if (experts.dispatch == Dispatch::all_to_all) {
      parallel_.add("moe-token-dispatcher-type", "alltoall");
    } else {
      parallel_.add("moe-token-dispatcher-type", "flex");
      parallel_.add("moe-flex-dispatcher-backend", experts.dispatch == Dispatch::deepep ? "deepep" : "hybridep");
    }
    if (experts.capacity > 0) {
      parallel_.add("moe-expert-capacity-factor", fmt::format("{}", experts.capacity));
      parallel_.add("moe-pad-expert-input-to-capacity");
    }
    if (experts.groups.count == 0) return;
    parallel_.add("moe-router-num-groups", experts.groups.count);
    parallel_.add("moe-router-group-topk", experts.groups.used);
  }

  // Megatron-LM's FSDP keeps checkpoints in a form of its own.
  void write_replicas() {
    if (layout_.shard_parameters) {
      parallel_.add("use-megatron-fsdp").add("data-parallel-sharding-strategy", "optim_grads_params");
      parallel_.add("ckpt-format", "fsdp_dtensor");
    }
    parallel_.add_if(layout_.shard_parameters || divides_optimizer(), "use-distributed-optimizer");
    parallel_.add_if(overlaps_gather(), "overlap-param-gather");
    parallel_.add_if(layout_.replicate > 1, "num-distributed-optimizer-instances", layout_.replicate);
    parallel_.add_if(layers_.overlap, "overlap-grad-reduce");
    parallel_.add_if(layers_.bucket_bytes % kElementBytes == 0, "ddp-bucket-size",
                     layers_.bucket_bytes / kElementBytes);
  }

  void write_training() {
    training_.add("micro-batch-size", job_.micro_batch()).add("global-batch-size", layout_.batch);
    const bool has_two_bytes = layers_.dtype == DType::bf16 || layers_.dtype == DType::f16;
    if (has_two_bytes) training_.add(layers_.dtype == DType::bf16 ? "bf16" : "fp16");
    training_.add_if(has_two_bytes && size_of(layers_.parameter_type()) == 2, "grad-reduce-in-bf16");
    write_precision();
    training_.add("optimizer", layers_.optimizer == Optimizer::momentum ? "sgd" : "adam");
    write_moments();
    write_recomputation();
    const Offload& offload = layers_.offload;
    training_.add_if(offload.blocks > 0, "cpu-offloading")
        .add_if(offload.blocks > 0, "cpu-offloading-num-layers", offload.blocks);
    if (offload.optimizer == 0) return;
    training_.add("optimizer-cpu-offload").add("optimizer-offload-fraction", fmt::format("{}", offload.optimizer));
  }

  void write_precision() {
    switch (layers_.quantised) {
      case Quantised::none:
        return;
      case Quantised::fp8: {
        const bool is_blockwise = layers_.recipe == ScalingRecipe::blockwise;
        training_.add("fp8-format", is_blockwise ? "e4m3" : "hybrid");
        training_.add("fp8-recipe", is_blockwise                               ? "blockwise"
                                    : layers_.recipe == ScalingRecipe::delayed ? "delayed"
                                                                               : "tensorwise");
        break;
      }
      case Quantised::mxfp8:
        training_.add("fp8-format", "e4m3").add("fp8-recipe", "mxfp8");
        break;
      case Quantised::nvfp4:
        training_.add("fp4-format", "e2m1").add("fp4-recipe", "nvfp4");
        break;
    }
    training_.add_if(layers_.gathers_quantised, "fp8-param-gather");
  }

  // Offloading the optimizer also needs the optimizer that keeps moments in other types.
  void write_moments() {
    const MomentTypes& types = layers_.moments;
    const bool is_usual = !types.first && !types.second;
    if (is_usual && layers_.offload.optimizer == 0) return;
    training_.add("use-precision-aware-optimizer");
    if (is_usual) return;
    training_.add("exp-avg-dtype", moment_word(types.first.value_or(DType::f32)));
    training_.add("exp-avg-sq-dtype", moment_word(types.second.value_or(DType::f32)));
  }

  void write_recomputation() {
    const RecomputedBlocks& blocks = layers_.recomputed;
    if (blocks.any) {
      training_.add("recompute-granularity", "full");
      training_.add("recompute-method", blocks.first > 0 ? "block" : "uniform");
      training_.add("recompute-num-layers", std::int64_t{blocks.first > 0 ? blocks.first : blocks.together});
      return;
    }
    const auto& document = job_.scenario.document;
    const YamlNode* modules =
        document ? node_at(document->root(), "workload.activation_checkpointing.modules") : nullptr;
    if (modules == nullptr) return;
    std::vector<std::string> names;
    for (const YamlNode* module : modules->items) names.push_back(module->text);
    training_.add("recompute-granularity", "selective");
    training_.add_list("recompute-modules", names);
  }

  void write_kernels() {
    const AttentionKernels attention = layers_.stack.attention;
    training_.add("attention-backend", layers_.stack.keeps_scores() ? "unfused" : "flash");
    training_.add_if(attention == AttentionKernels::separate, "no-masked-softmax-fusion");
    training_.add_if(layers_.stack.accumulation == Accumulation::separate, "no-gradient-accumulation-fusion");
    training_.add_if(layers_.stack.loss == Loss::fused, "cross-entropy-loss-fusion");
    if (!has_experts_) return;
    training_.add("moe-grouped-gemm");
    training_.add_if(layers_.stack.experts == ExpertKernels::grouped, "moe-use-legacy-grouped-gemm");
    training_.add_if(layers_.stack.experts == ExpertKernels::fused, "use-transformer-engine-op-fuser");
  }

  // Exchanges start in order where devices divide layers or sequences, which Megatron-LM demands before Blackwell; its
  // FSDP demands the opposite.
  std::string environment() const {
    std::string text;
    const bool needs_order = (layout_.tensor > 1 || layout_.context > 1) && !layout_.shard_parameters;
    if (needs_order) text += "export CUDA_DEVICE_MAX_CONNECTIONS=1\n";
    for (const auto& [name, value] : job_.scenario.engine.nccl) {
      if (is_variable(name)) text += fmt::format("export {}={}\n", name, quoted_word(value));
    }
    return text;
  }

  const JobToWrite& job_;
  const TransformerSpec& model_;
  const ParallelOptions& layout_;
  const LayersSettings& layers_;
  bool has_experts_ = false;
  Arguments sizes_{"MODEL"}, parallel_{"PARALLEL"}, training_{"TRAINING"};
};

}  // namespace

std::string megatron_script(const JobToWrite& job, const std::vector<std::string>& comments) {
  return MegatronScript(job).text(comments);
}

}  // namespace tandem
