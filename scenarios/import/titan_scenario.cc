#include "scenarios/import/titan_scenario.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "engine/engine_info.h"
#include "scenarios/import/configuration_scenario.h"
#include "scenarios/import/given_keys.h"
#include "scenarios/import/mesh_sizes.h"
#include "scenarios/import/titan/titan_stages.h"
#include "strategies/strategies.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

class TitanScenario {
 public:
  TitanScenario(const TitanJob& job, Choices& choices, std::vector<std::string>& left_out)
      : job_(job), stages_(stages_of_titan(job)), choices_(choices), options_(choices.options()), left_out_(left_out) {}

  std::string text() {
    find_sizes();
    judge_types();
    const std::string machine = choices_.word(options_.topology, std::string(kUsualMachine), "machine", "--topology");
    YamlMap scenario;
    scenario.set("schema_version", 1).quote("name", job_.name);
    scenario.below("workload", workload()).below("strategy", strategy());
    scenario.set("engine", YamlMap().set("name", model_engine().name));
    set_machines(scenario,
                 {.name = machine, .workers = sizes_.workers, .devices = sizes_.devices, .gpu = options_.gpu});
    return scenario.set("steps", 3).set("warmup_steps", 1).text();
  }

 private:
  [[noreturn]] void refuse(std::string_view key, const std::string& message) const {
    refuse_size(origins_of_job(job_, options_), options_, key, message);
  }

  std::string key_of_most() const {
    const std::pair<std::int64_t, std::string_view> degrees[] = {{job_.shards, "data_parallel_shard_degree"},
                                                                 {job_.copies, "data_parallel_replicate_degree"},
                                                                 {job_.tensor, "tensor_parallel_degree"},
                                                                 {job_.pipeline, "pipeline_parallel_degree"},
                                                                 {job_.context, "context_parallel_degree"}};
    return fmt::format("parallelism.{}", std::ranges::max_element(degrees)->second);
  }

  // Replicas divide parameters among them, unless they are given as one shard.
  void find_sizes() {
    const MeshAxes axes{.tensor = job_.tensor,
                        .pipeline = job_.pipeline,
                        .context = job_.context,
                        .expert = job_.expert,
                        .expert_tensor = job_.expert_tensor,
                        .micro_batch = job_.pipeline > 1 ? job_.micro_batch : job_.local_batch};
    const int devices = choices_.number(options_.devices, kUsualDevices, "devices of a machine:", "--devices");
    const std::int64_t replicas = job_.copies * std::max<std::int64_t>(1, job_.shards);
    constexpr double kMostOfJob = 1 << 30;
    const double product = static_cast<double>(replicas) * static_cast<double>(job_.tensor) *
                           static_cast<double>(job_.pipeline) * static_cast<double>(job_.context);
    if (product > kMostOfJob) {
      job_.fail(key_of_most(), fmt::format("the degrees of parallelism need {:.0f} devices", product));
    }
    const std::int64_t all = replicas * axes.of_replica();
    const std::int64_t of_all = (all + devices - 1) / devices, of_experts = least_workers(axes, devices);
    const std::int64_t least = job_.shards > 0 || job_.expert == 1 ? of_all : std::lcm(of_all, of_experts);
    const int workers = choices_.number(options_.workers, static_cast<int>(std::min<std::int64_t>(least, 1 << 20)),
                                        "machines:", "--workers");
    const std::int64_t data = std::int64_t{workers} * devices / axes.of_replica();
    if (job_.shards > 0 && data != replicas) {
      refuse("strategy.data",
             fmt::format("data_parallel_shard_degree {} x data_parallel_replicate_degree {} are {} replicas, and {} "
                         "machines of {} devices have {}: --workers and --devices",
                         job_.shards, job_.copies, replicas, workers, devices, data));
    }
    if (data % job_.copies != 0) {
      refuse(
          "strategy.replicate",
          fmt::format("data_parallel_replicate_degree {} does not divide the {} replicas of {} machines of {} devices",
                      job_.copies, data, workers, devices));
    }
    const std::int64_t batch = job_.global_batch > 0 ? job_.global_batch : job_.local_batch * data;
    sizes_ = mesh_sizes(axes, workers, devices, options_.batch > 0 ? options_.batch : batch,
                        [this](MeshPart part, const std::string& message) { refuse(key_of_part(part), message); });
  }

  // Devices that divide sequences divide parameters, too.
  bool is_sharded() const { return (job_.shards != 1 || job_.context > 1) && sizes_.data * job_.context > job_.copies; }
  // Nothing but replicas that divide all parameters among them, which have the type of what is computed.
  bool is_only_sharded() const {
    return is_sharded() && job_.gathers_each_pass && !job_.keeps_f32 && job_.copies == 1 &&
           job_.tensor * job_.pipeline * job_.context * job_.expert == 1;
  }
  bool has_mixed_types() const { return is_sharded() || job_.tensor * job_.pipeline == 1; }
  bool computes_f32() const { return has_mixed_types() ? job_.computes_f32 : job_.keeps_f32; }

  // The types of torchtitan that a scenario cannot say.
  void judge_types() {
    if (!has_mixed_types() && job_.keeps_f32 && !job_.computes_f32) {
      choices_.note(
          "everything is computed in float32: with tensor or pipeline parallelism, training.mixed_precision_param "
          "counts only where parameters are divided");
    }
    if (computes_f32() && !job_.keeps_f32) {
      left_out_.emplace_back("training.dtype bfloat16: parameters have the type of what is computed, float32");
    } else if (is_sharded() && job_.keeps_f32 != job_.reduces_f32) {
      left_out_.push_back(
          fmt::format("training.mixed_precision_reduce {}: gradients are added up as they are kept, in {}",
                      job_.reduces_f32 ? "float32" : "bfloat16",
                      job_.keeps_f32 ? "float32, twice the bytes" : "bfloat16, half the bytes"));
    }
    if (computes_f32() && !job_.precision.empty()) {
      left_out_.push_back(fmt::format("{}: only operands of two bytes are quantised", job_.precision));
    }
  }

  YamlMap workload() {
    YamlMap workload, model_sizes, stack;
    workload.set("kind", "layers").quote("model", job_.model);
    model_sizes.set("tokens", job_.tokens);
    for (const auto& [name, size] : job_.model_sizes) model_sizes.set(name, size);
    workload.set("sizes", model_sizes);
    workload.set("stack", stack.set("fusion", job_.compiles ? "compiled" : "none").set("attention", "flash"));
    workload.set("batch", sizes_.batch).set("dtype", computes_f32() ? "f32" : "bf16");
    if (job_.keeps_f32 && !computes_f32()) workload.set("parameter_dtype", "f32");
    const bool is_quantised = !job_.precision.empty() && !computes_f32();
    if (is_quantised || job_.keeps_bf16_moments) {
      YamlMap types;
      if (is_quantised) types.set("compute", job_.precision);
      if (is_quantised && !job_.recipe.empty()) types.set("recipe", job_.recipe);
      if (is_quantised && job_.gathers_fp8) types.set("gather", "fp8");
      if (job_.keeps_bf16_moments) types.set("moments", "bf16");
      workload.set("precision", types);
    }
    workload.set("optimizer", "adam");
    if (job_.tensor > 1 && job_.sequence_parallel) workload.set("sequence_parallel", true);
    if (job_.overlaps_tensor && job_.tensor > 1 && job_.sequence_parallel) workload.set("overlap_products", true);
    const std::string again = options_.recompute ? "true" : job_.again;
    if (!again.empty()) workload.set("activation_checkpointing", again);
    if (is_only_sharded() && sizes_.micro_batches > 1) {
      workload.set("gradient_accumulation_steps", sizes_.micro_batches);
    }
    return workload;
  }

  YamlMap strategy() {
    YamlMap strategy;
    if (is_only_sharded()) return strategy.set("name", sharding_strategy());
    strategy.set("name", mesh_strategy());
    strategy.set("data", sizes_.data).set("tensor", job_.tensor).set("pipeline", job_.pipeline);
    if (job_.context > 1) strategy.set("context", job_.context);
    if (job_.context > 1 && job_.context_exchange != ContextExchange::all_gather) {
      strategy.set("context_exchange", name_of(job_.context_exchange));
    }
    if (job_.expert > 1) strategy.set("expert", job_.expert);
    if (job_.expert_tensor > 0) strategy.set("expert_tensor", job_.expert_tensor);
    strategy.set("micro_batches", sizes_.micro_batches);
    if (stages_.of_device > 1 && !job_.stages.is_v) strategy.set("virtual_stages", stages_.of_device);
    if (!stages_.blocks.empty()) strategy.set("stage_blocks", fmt::format("[{}]", fmt::join(stages_.blocks, ", ")));
    if (!job_.schedule.empty()) strategy.set("schedule", job_.schedule);
    if (is_sharded() && job_.gathers_each_pass) strategy.set("shard_parameters", true);
    if (is_sharded() && !job_.gathers_each_pass)
      strategy.set("distributed_optimizer", true).set("overlap_gather", true);
    if (is_sharded() && job_.copies > 1) strategy.set("replicate", job_.copies);
    return strategy;
  }

  const TitanJob& job_;
  const StagesOfTitan stages_;
  Choices& choices_;
  const ImportChoices& options_;
  std::vector<std::string>& left_out_;
  MeshSizes sizes_{};
};

}  // namespace

std::string titan_scenario(const TitanJob& job, Choices& choices, std::vector<std::string>& left_out) {
  return TitanScenario(job, choices, left_out).text();
}

}  // namespace tandem
