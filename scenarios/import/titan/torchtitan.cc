#include "scenarios/import/titan/torchtitan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <utility>

#include "scenarios/import/python/titan_python.h"
#include "scenarios/import/titan/titan_keys.h"
#include "scenarios/import/titan/titan_values.h"
#include "strategies/parallel/layout/parallel_options.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostDegree = 1 << 20;
constexpr std::int64_t kMostSequences = 1 << 28;
constexpr std::int64_t kMostTokens = 1 << 24;

using Sizes = std::vector<std::pair<std::string, std::int64_t>>;

struct Flavor {
  std::int64_t blocks = 0;
  Sizes sizes{};  // that differ from those of the packaged model
};

// torchtitan/models/llama3: the flavors of Llama 3.1.
const std::map<std::string, Flavor>& llama_flavors() {
  static const std::map<std::string, Flavor> kFlavors{
      {"8B", {.blocks = 32}},
      {"70B", {.blocks = 80, .sizes = {{"hidden", 8192}, {"heads", 64}, {"intermediate", 28672}, {"layers", 80}}}},
      {"405B",
       {.blocks = 126, .sizes = {{"hidden", 16384}, {"heads", 128}, {"intermediate", 53248}, {"layers", 126}}}}};
  return kFlavors;
}

struct Schedule {
  std::string_view name;
  PipelineOrder order = PipelineOrder::one_forward_one_backward;
  TitanStages stages{};
  bool is_modelled = true;
};
constexpr TitanStages kLooped{.least = 2, .most = kMostDegree, .usual = 2};
constexpr TitanStages kOfV{.least = 2, .most = 2, .usual = 2, .is_v = true};
// torch/distributed/pipelining/schedules.py. Looped schedules have two stages a device unless the layers of a stage are
// given.
constexpr std::array kSchedules = {
    Schedule{"1F1B"},
    Schedule{"GPipe", PipelineOrder::one_forward_one_backward, {}, false},
    Schedule{"Interleaved1F1B", PipelineOrder::one_forward_one_backward, kLooped},
    Schedule{"LoopedBFS", PipelineOrder::one_forward_one_backward, kLooped, false},
    Schedule{"InterleavedZeroBubble", PipelineOrder::zero_bubble, kLooped},
    Schedule{"ZBVZeroBubble", PipelineOrder::zero_bubble_v, kOfV},
    Schedule{"DualPipeV", PipelineOrder::dual_pipe_v, kOfV},
};

class TitanReader {
 public:
  TitanReader(const InputFile& file, const std::string& name) : file_(file), values_(file, name) {}

  TitanJob read() {
    job_.file = file_.name();
    job_.places = values_.places();
    read_training();
    read_types();
    read_parallelism();
    read_model();
    read_precision();
    read_recomputation();
    if (values_.number("training.max_norm", 1) > 0) {
      leave_out("training.max_norm: the norm of the gradients takes no time");
    }
    for (const auto& sentences : {unmodelled_keys(values_, job_), values_.unread()}) {
      job_.left_out.insert(job_.left_out.end(), sentences.begin(), sentences.end());
    }
    return std::move(job_);
  }

 private:
  void leave_out(std::string sentence) { job_.left_out.push_back(std::move(sentence)); }

  void read_training() {
    job_.tokens = values_.whole("training.seq_len", 2048, 1, kMostTokens);
    const std::int64_t older = values_.whole("training.batch_size", 8, 1, kMostSequences);
    job_.local_batch = values_.whole("training.local_batch_size", older, 1, kMostSequences);
    job_.global_batch = std::max<std::int64_t>(0, values_.whole("training.global_batch_size", -1, -1, kMostSequences));
    const bool compiles_now = values_.is_on("compile.enable"), compiled_before = values_.is_on("training.compile");
    job_.compiles = (compiles_now && compiles_model()) || compiled_before;
    const bool overlaps = values_.is_on("parallelism.enable_async_tensor_parallel");
    job_.overlaps_tensor = (values_.is_on("experimental.enable_async_tensor_parallel") || overlaps) && job_.compiles;
    job_.sequence_parallel = values_.is_on("parallelism.enable_sequence_parallel", true);
    const std::string optimizer = values_.text("optimizer.name", "AdamW");
    if (optimizer != "Adam" && optimizer != "AdamW") {
      leave_out(fmt::format("optimizer.name {}: it takes the time of AdamW", optimizer));
    }
    job_.keeps_bf16_moments = values_.text("optimizer.implementation", "fused") == "fused_opt_states_bf16";
  }

  bool compiles_model() const {
    const std::vector<std::string> components = values_.texts("compile.components");
    return components.empty() || std::ranges::count(components, "model") > 0;
  }

  std::string type(std::string_view key, std::string_view usual) const {
    const std::string name = values_.text(key, usual);
    if (name == "float32" || name == "bfloat16") return name;
    values_.fail(key, fmt::format("must be float32 or bfloat16, found '{}'", name));
  }

  // torchtitan/distributed/utils.py (maybe_enable_amp): fully_shard, or autocast where replicas alone share the work,
  // computes in mixed_precision_param; everything else has `dtype`.
  void read_types() {
    job_.keeps_f32 = type("training.dtype", "float32") == "float32";
    job_.computes_f32 = type("training.mixed_precision_param", "bfloat16") == "float32";
    job_.reduces_f32 = type("training.mixed_precision_reduce", "float32") == "float32";
  }

  std::int64_t degree(const std::string& key) const { return values_.whole("parallelism." + key, 1, 1, kMostDegree); }

  void read_parallelism() {
    job_.copies = degree("data_parallel_replicate_degree");
    const std::int64_t shards = values_.whole("parallelism.data_parallel_shard_degree", -1, -1, kMostDegree);
    if (shards == 0)
      values_.fail("parallelism.data_parallel_shard_degree", "must be -1 (all that are left) or at least 1");
    job_.shards = std::max<std::int64_t>(0, shards);
    job_.tensor = degree("tensor_parallel_degree");
    job_.pipeline = degree("pipeline_parallel_degree");
    job_.context = degree("context_parallel_degree");
    read_rotation();
    job_.expert = degree("expert_parallel_degree");
    read_tensor_of_experts();
    job_.micro_batch = values_.whole("parallelism.pipeline_parallel_microbatch_size", 1, 1, kMostSequences);
    if (job_.pipeline > 1 && job_.local_batch % job_.micro_batch != 0) {
      values_.fail("parallelism.pipeline_parallel_microbatch_size",
                   fmt::format("{} does not divide the local batch of {}", job_.micro_batch, job_.local_batch));
    }
    read_stages();
    read_gathering();
  }

  // Where devices divide experts, each has whole ones unless they are divided as the other layers are. Whole ones need
  // tokens of their own on each device.
  void read_tensor_of_experts() {
    const std::int64_t devices = degree("expert_tensor_parallel_degree");
    if (job_.expert == 1 || job_.tensor == 1) return;
    if (devices != 1 && devices != job_.tensor) {
      values_.fail("parallelism.expert_tensor_parallel_degree", "must be 1 or tensor_parallel_degree");
    }
    job_.expert_tensor = devices == 1 && job_.sequence_parallel ? 1 : 0;
    if (devices != 1 || job_.sequence_parallel) return;
    leave_out(
        "parallelism.expert_tensor_parallel_degree 1: experts are divided as the other layers are; without "
        "enable_sequence_parallel, devices have no tokens of their own");
  }

  // PyTorch's _AllToAllRotater gives keys and values to the next rank (torch/distributed/tensor/experimental).
  void read_rotation() {
    const std::string key = "parallelism.context_parallel_rotate_method", rotation = values_.text(key, "allgather");
    if (rotation != "allgather" && rotation != "alltoall") values_.fail(key, "must be allgather or alltoall");
    if (rotation == "alltoall") job_.context_exchange = ContextExchange::ring;
  }

  // By default parameters that are gathered for a forward pass stay until the end of the step in pipelines only.
  void read_gathering() {
    const std::string when = values_.text("parallelism.fsdp_reshard_after_forward", "default");
    if (when != "default" && when != "always" && when != "never") {
      values_.fail("parallelism.fsdp_reshard_after_forward", "must be default, always or never");
    }
    job_.gathers_each_pass = when == "always" || (when == "default" && job_.pipeline == 1);
  }

  void read_stages() {
    constexpr std::int64_t kMostBlocks = 1 << 16;
    job_.blocks_of_stage = values_.whole("parallelism.pipeline_parallel_layers_per_stage", 0, 1, kMostBlocks);
    job_.first_less = values_.whole("parallelism.pipeline_parallel_first_stage_less_layers", 1, 0, kMostBlocks);
    job_.last_less = values_.whole("parallelism.pipeline_parallel_last_stage_less_layers", 1, 0, kMostBlocks);
    const std::string key = "parallelism.pipeline_parallel_schedule", name = values_.text(key, "1F1B");
    if (job_.pipeline == 1) return;
    const auto* const known = std::ranges::find(kSchedules, std::string_view(name), &Schedule::name);
    const bool is_known = known != kSchedules.end();
    job_.stages = is_known ? known->stages : TitanStages{.most = kMostDegree};
    if (is_known && known->order != PipelineOrder::one_forward_one_backward) job_.schedule = name_of(known->order);
    if (is_known && known->is_modelled) return;
    leave_out(fmt::format("{} {}: the schedule is {}1F1B", key, name, job_.stages.least > 1 ? "Interleaved" : ""));
  }

  // Models beside Llama 3 are read from the files of Hugging Face that the configuration names.
  void read_model() {
    const std::string name = values_.text("model.name", "llama3"), flavor = values_.text("model.flavor", "debugmodel");
    job_.name = fmt::format("{}-{}", name, flavor);
    const auto known = llama_flavors().find(flavor.substr(0, flavor.find('_')));  // "8B_flex"
    if (name == "llama3" && known != llama_flavors().end()) {
      if (job_.expert > 1) values_.fail("parallelism.expert_parallel_degree", "the model has no experts");
      job_.model = "llama";
      job_.model_sizes = known->second.sizes;
      job_.blocks = known->second.blocks;
      return;
    }
    const std::string folder = values_.text("model.hf_assets_path", "");
    const fs::path config = file_.path().parent_path() / folder / "config.json";
    std::error_code ignored;
    if (!folder.empty() && fs::is_regular_file(config, ignored)) {
      job_.config = (fs::path(folder) / "config.json").lexically_normal().string();
      return;
    }
    values_.fail(
        "model.flavor",
        fmt::format("the sizes of {} are known here for 8B, 70B and 405B of llama3; for others, put the model's "
                    "config.json into the folder of hf_assets_path",
                    job_.name));
  }

  void read_precision() {
    const std::vector<std::string> names = values_.texts("model.converters");
    const auto has = [&](std::string_view name) {
      return std::ranges::any_of(names, [&](const std::string& one) { return one.find(name) != std::string::npos; });
    };
    if (has("mx")) {
      job_.precision = "mxfp8";
    } else if (has("float8")) {
      job_.precision = "fp8";
      const std::string section = has("quantize.linear.float8") ? "quantize.linear.float8" : "float8";
      job_.gathers_fp8 = values_.is_on(section + ".enable_fsdp_float8_all_gather");
      read_recipe(section + ".recipe_name");
    }
  }

  // torchao.float8.Float8LinearRecipeName; only scales of tensors go with parameters that are gathered in fp8.
  void read_recipe(const std::string& key) {
    const std::string name = values_.text(key, "tensorwise");
    if (name == "tensorwise") return;
    if (name != "rowwise" && name != "rowwise_with_gw_hp") {
      values_.fail(key, fmt::format("must be tensorwise, rowwise or rowwise_with_gw_hp, found '{}'", name));
    }
    job_.recipe = "rowwise";
    job_.gathers_fp8 = false;
    if (name == "rowwise") return;
    leave_out(fmt::format("{} {}: gradients of weights are computed in fp8, too", key, name));
  }

  void read_recomputation() {
    const std::string mode = values_.text("activation_checkpoint.mode", "selective");
    if (mode == "none") return;
    if (mode == "full") {
      job_.again = "true";
      return;
    }
    if (mode != "selective") {
      values_.fail("activation_checkpoint.mode", fmt::format("must be none, selective or full, found '{}'", mode));
    }
    const std::string option = values_.text("activation_checkpoint.selective_ac_option", "2");
    const bool is_number =
        !option.empty() && std::all_of(option.begin(), option.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (option != "op" && (!is_number || option.size() > 4 || std::stoi(option) == 0)) {
      values_.fail("activation_checkpoint.selective_ac_option",
                   fmt::format("must be op or a number of layers, found '{}'", option));
    }
    job_.again = option == "op" ? "operations" : option == "1" ? "true" : fmt::format("{{every: {}}}", option);
  }

  const InputFile& file_;
  TitanValues values_;
  TitanJob job_;
};

}  // namespace

bool is_titan_job(std::string_view text) {
  const auto has_line = [&](std::string_view begin) {
    return text.starts_with(begin) || text.find("\n" + std::string(begin)) != std::string_view::npos;
  };
  return is_titan_python(text) || (has_line("[model]") && has_line("[training]") && has_line("flavor"));
}

TitanJob read_titan_job(const InputFile& file, const std::string& name) {
  return TitanReader(file, name).read();
}

std::string titan_flavor_of(std::int64_t blocks) {
  const auto found = std::ranges::find(llama_flavors(), blocks, [](const auto& one) { return one.second.blocks; });
  return found == llama_flavors().end() ? "" : found->first;
}

std::string_view titan_schedule_of(PipelineOrder order, bool has_several_stages) {
  const auto* const found = std::ranges::find_if(kSchedules, [&](const Schedule& one) {
    return one.is_modelled && one.order == order && (one.stages.most > 1) == has_several_stages;
  });
  return found == kSchedules.end() ? "" : found->name;
}

}  // namespace tandem
