// A job of pytorch/torchtitan in the keys of torchtitan/config/job_config.py (v0.2.0), and what its
// torchtitan/models/llama3/infra/parallelize.py refuses.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string_view>
#include <utility>

#include "scenarios/export/job_writer.h"
#include "scenarios/import/titan/titan_stages.h"
#include "scenarios/import/titan/torchtitan.h"
#include "scenarios/job/tasks.h"

namespace tandem {
namespace {

constexpr int kUsualStages = 2;  // of a device, with schedules that have several

// A section of a TOML file.
class Section {
 public:
  explicit Section(std::string name) : name_(std::move(name)) {}

  Section& set(std::string_view key, std::int64_t number) { return line(fmt::format("{} = {}", key, number)); }
  Section& set(std::string_view key, std::string_view word) { return line(fmt::format("{} = \"{}\"", key, word)); }
  Section& turn(std::string_view key, bool is_on) { return line(fmt::format("{} = {}", key, is_on)); }
  Section& list(std::string_view key, std::string_view word) { return line(fmt::format("{} = [\"{}\"]", key, word)); }

  std::string text() const { return lines_.empty() ? "" : fmt::format("\n[{}]\n{}", name_, lines_); }

 private:
  Section& line(const std::string& text) {
    lines_ += text + "\n";
    return *this;
  }

  std::string name_, lines_{};
};

class TitanToml {
 public:
  explicit TitanToml(const JobToWrite& job)
      : job_(job),
        layout_(job.layout),
        layers_(job.layers),
        divides_parameters_(layout_.data * layout_.context > layout_.replicate &&
                            (layout_.shard_parameters || layout_.distributed_optimizer)) {}

  std::string text(const std::vector<std::string>& comments) {
    check();
    write_model();
    write_training();
    write_parallelism();
    write_pipeline();
    write_recomputation();
    write_precision();
    std::string text;
    for (const std::string& comment : comments) text += "# " + comment + "\n";
    for (const Section* one : {&model_, &optimizer_, &training_, &parallelism_, &again_, &compile_, &quantised_})
      text += one->text();
    return text;
  }

 private:
  void check() const {
    if (layers_.optimizer != Optimizer::adam)
      job_.refuse("workload.optimizer", "torchtitan's optimizers are Adam and AdamW (adam)");
    if (layout_.batch % (layout_.data * layout_.micro_batches) != 0)
      job_.refuse("workload.batch",
                  fmt::format("torchtitan's micro-batches are equal: {} replicas x {} micro-batches do not divide {}",
                              layout_.data, layout_.micro_batches, layout_.batch));
    const bool has_replicas = layout_.data > 1 && !divides_parameters_;
    if (has_replicas && layout_.tensor * layout_.pipeline * layout_.context > 1)
      job_.refuse("strategy.data",
                  "torchtitan keeps whole parameters on replicas (DDP) only where nothing else divides the model; "
                  "shard_parameters or distributed_optimizer divides them");
    if (layers_.overlap_products && layout_.tensor > 1 && layers_.stack.fusion != Fusion::compiled)
      job_.refuse("workload.overlap_products",
                  "torchtitan's enable_async_tensor_parallel needs stack: {fusion: compiled}");
  }

  std::int64_t blocks() const { return std::ssize(job_.model.blocks); }

  void write_model() {
    const std::string flavor = titan_flavor_of(blocks());
    if (flavor.empty()) {
      job_.refuse("workload.model",
                  fmt::format("the flavors of torchtitan that are known here are 8B, 70B and 405B of llama3, of 32, 80 "
                              "and 126 blocks; found {} blocks",
                              blocks()));
    }
    model_.set("name", "llama3").set("flavor", flavor);
    const bool is_mx = layers_.quantised == Quantised::mxfp8;
    if (layers_.quantised == Quantised::none) return;
    model_.list("converters", is_mx ? "quantize.linear.mx" : "quantize.linear.float8");
  }

  void write_training() {
    optimizer_.set("name", "AdamW");
    const MomentTypes& moments = layers_.moments;
    if (moments.first == DType::bf16 && moments.second == DType::bf16)
      optimizer_.set("implementation", "fused_opt_states_bf16");
    training_.set("seq_len", job_.model.tokens);
    const std::int64_t of_replica = layout_.batch / layout_.data;
    training_.set("local_batch_size", layout_.pipeline > 1 ? of_replica : job_.micro_batch());
    training_.set("global_batch_size", layout_.batch);
    const bool keeps_f32 = layers_.parameter_type() == DType::f32, computes_f32 = layers_.dtype == DType::f32;
    training_.set("dtype", keeps_f32 ? "float32" : "bfloat16");
    training_.set("mixed_precision_param", computes_f32 ? "float32" : "bfloat16");
    compile_.turn("enable", layers_.stack.fusion == Fusion::compiled);
  }

  void write_parallelism() {
    parallelism_.set("data_parallel_replicate_degree", divides_parameters_ ? layout_.replicate : layout_.data);
    parallelism_.set("data_parallel_shard_degree", divides_parameters_ ? layout_.data / layout_.replicate : 1);
    if (divides_parameters_)
      parallelism_.set("fsdp_reshard_after_forward", layout_.shard_parameters ? "always" : "never");
    parallelism_.set("tensor_parallel_degree", layout_.tensor);
    if (layout_.tensor > 1) {
      parallelism_.turn("enable_sequence_parallel", layers_.sequence_parallel);
      parallelism_.turn("enable_async_tensor_parallel", layers_.overlap_products);
    }
    parallelism_.set("context_parallel_degree", layout_.context);
    if (layout_.context == 1) return;
    const bool is_ring = layout_.context_exchange == ContextExchange::ring;
    parallelism_.set("context_parallel_rotate_method", is_ring ? "alltoall" : "allgather");
  }

  void write_pipeline() {
    parallelism_.set("pipeline_parallel_degree", layout_.pipeline);
    if (layout_.pipeline == 1) return;
    const std::string_view schedule = titan_schedule_of(layout_.order, layout_.chunks() > 1);
    if (schedule.empty()) {
      job_.refuse("strategy.schedule", fmt::format("torchtitan has no {} with {} a device", name_of(layout_.order),
                                                   layout_.chunks() > 1 ? "several stages" : "one stage"));
    }
    parallelism_.set("pipeline_parallel_schedule", schedule);
    parallelism_.set("pipeline_parallel_microbatch_size", job_.micro_batch());
    write_stages();
  }

  std::vector<std::int64_t> blocks_of_stages() const {
    if (layout_.stage_blocks.empty())
      return std::vector<std::int64_t>(static_cast<std::size_t>(layout_.stages()), blocks() / layout_.stages());
    return {layout_.stage_blocks.begin(), layout_.stage_blocks.end()};
  }

  // Finds how many blocks the embedding and the output count as where torchtitan divides the blocks in this way.
  void write_stages() {
    const std::vector<std::int64_t> wanted = blocks_of_stages();
    const std::int64_t most = *std::ranges::max_element(wanted) + 1;
    for (std::int64_t sum = 0; sum <= 2 * most; ++sum) {
      for (std::int64_t first = std::max<std::int64_t>(0, sum - most); first <= std::min(sum, most); ++first) {
        if (write_stages(wanted, first, sum - first)) return;
      }
    }
    job_.refuse("strategy.stage_blocks",
                fmt::format("torchtitan divides {} blocks among {} stages equally, but for what the first and the last "
                            "stage have less; balanced or equal numbers it can",
                            blocks(), wanted.size()));
  }

  bool write_stages(const std::vector<std::int64_t>& wanted, std::int64_t first_less, std::int64_t last_less) {
    const std::int64_t weight = blocks() + first_less + last_less, count = std::ssize(wanted);
    const std::int64_t of_stage = (weight + count - 1) / count;
    const bool is_asked = layout_.chunks() > kUsualStages;
    if (is_asked && (weight + of_stage - 1) / of_stage != count) return false;
    std::vector<std::int64_t> made;
    for (std::int64_t stage = 0; stage < count; ++stage)
      made.push_back(weight / count + (stage < weight % count ? 1 : 0));
    if (first_less > weight / count || last_less > weight / count) return false;
    made.front() -= first_less;
    made.back() -= last_less;
    if (made != wanted) return false;
    parallelism_.set("pipeline_parallel_first_stage_less_layers", first_less);
    parallelism_.set("pipeline_parallel_last_stage_less_layers", last_less);
    if (is_asked) parallelism_.set("pipeline_parallel_layers_per_stage", of_stage);
    return true;
  }

  void write_recomputation() {
    const RecomputedBlocks& blocks = layers_.recomputed;
    if (blocks.any && blocks.every == 1) {
      again_.set("mode", "full");
    } else if (blocks.any || has_recomputed_layers(layers_.model)) {
      again_.set("mode", "selective");
      again_.set("selective_ac_option", blocks.any ? std::to_string(blocks.every) : "op");
    } else {
      again_.set("mode", "none");
    }
  }

  void write_precision() {
    if (layers_.quantised != Quantised::fp8) return;
    quantised_.set("recipe_name", layers_.recipe == ScalingRecipe::rowwise ? "rowwise" : "tensorwise");
    quantised_.turn("enable_fsdp_float8_all_gather", layers_.gathers_quantised);
  }

  const JobToWrite& job_;
  const ParallelOptions& layout_;
  const LayersSettings& layers_;
  bool divides_parameters_ = false;
  Section model_{"model"}, optimizer_{"optimizer"}, training_{"training"}, parallelism_{"parallelism"},
      again_{"activation_checkpoint"}, compile_{"compile"}, quantised_{"quantize.linear.float8"};
};

}  // namespace

std::string titan_toml(const JobToWrite& job, const std::vector<std::string>& comments) {
  return TitanToml(job).text(comments);
}

}  // namespace tandem
