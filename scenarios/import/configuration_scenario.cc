#include "scenarios/import/configuration_scenario.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "engine/engine_info.h"
#include "scenarios/import/mesh_sizes.h"
#include "strategies/parallel/layout/layer_division.h"
#include "strategies/strategies.h"

namespace tandem {
namespace {

int at_most_batch(int devices, int workers) {
  constexpr std::int64_t kMostBatch = 1 << 28;
  return static_cast<int>(std::min(kMostBatch, static_cast<std::int64_t>(devices) * workers));
}

// A configuration as a scenario.
class HuggingFaceScenario {
 public:
  HuggingFaceScenario(const HuggingFaceModel& model, const std::string& file, Choices& choices)
      : model_(model), file_(file), choices_(choices), options_(choices.options()) {}

  std::string text(const std::string& model_file) {
    devices_ = choices_.number(options_.devices, kUsualDevices, "devices of a machine:", "--devices");
    const std::string usual = options_.divides_model() ? mesh_strategy() : sharding_strategy();
    const std::string strategy = choices_.word(options_.strategy, usual, "strategy", "--strategy");
    const StrategyInfo* info = find_strategy(strategy);
    has_mesh_ = info != nullptr && info->has_free_mesh();
    if (!has_mesh_ && options_.divides_model()) {
      refuse(
          fmt::format("--tensor, --pipeline, --context, --expert, --virtual-stages and --micro-batch are for "
                      "--strategy {}, found {}",
                      mesh_strategy(), strategy));
    }
    if (!options_.dispatch.empty() && !has_mesh_) {
      refuse(fmt::format("--dispatch is for --strategy {}, whose --expert devices divide experts", mesh_strategy()));
    }
    const bool has_experts = std::ranges::any_of(
        model_.spec.blocks, [](const Blocks& blocks) { return blocks.block.feed_forward.experts.has_value(); });
    if (!options_.dispatch.empty() && !has_experts) refuse("--dispatch: the model has no experts");
    YamlMap mesh = YamlMap().set("name", strategy);
    if (has_mesh_) {
      divide(mesh);
    } else {
      replicate(info, strategy);
    }
    const std::string machine = choices_.word(options_.topology, std::string(kUsualMachine), "machine", "--topology");
    YamlMap scenario;
    scenario.set("schema_version", 1).quote("name", model_.spec.name).below("workload", workload(model_file));
    scenario.set("strategy", mesh).set("engine", YamlMap().set("name", model_engine().name));
    set_machines(scenario, {.name = machine, .workers = workers_, .devices = devices_, .gpu = options_.gpu});
    return scenario.set("steps", 3).set("warmup_steps", 1).text();
  }

 private:
  [[noreturn]] void refuse(const std::string& message) const {
    throw InputError({problem_at(file_, kBeginning, message)});
  }

  void replicate(const StrategyInfo* info, const std::string& strategy) {
    workers_ = std::max(1, options_.workers);
    batch_ = choices_.number(options_.batch, at_most_batch(devices_, workers_), "global batch:", "--batch");
    if (batch_ < static_cast<std::int64_t>(devices_) * workers_) {
      refuse(fmt::format("a batch of {} leaves some of {} GPUs without an example: --batch, --devices and --workers",
                         batch_, static_cast<std::int64_t>(devices_) * workers_));
    }
    if (workers_ > 1 && info != nullptr && !info->several_workers) {
      refuse(fmt::format("strategy '{}' runs on one machine, not on {}: --strategy and --workers", strategy, workers_));
    }
  }

  void divide(YamlMap& mesh) {
    const auto given = [](int size) { return std::int64_t{std::max(1, size)}; };
    const MeshAxes axes{.tensor = given(options_.tensor),
                        .pipeline = given(options_.pipeline),
                        .context = given(options_.context),
                        .expert = given(options_.expert),
                        .micro_batch = given(options_.micro_batch)};
    workers_ = choices_.number(options_.workers, least_workers(axes, devices_), "machines:", "--workers");
    const auto stated = options_.batch > 0 ? std::optional<std::int64_t>(options_.batch) : std::nullopt;
    const MeshSizes sizes =
        mesh_sizes(axes, workers_, devices_, stated, [this](MeshPart part, const std::string& message) {
          const char* options = part == MeshPart::experts ? "--expert"
                                : part == MeshPart::batch ? "--batch"
                                                          : "--devices and --workers";
          refuse(fmt::format("{}: {}", options, message));
        });
    batch_ = sizes.batch;
    if (!stated) choices_.note(fmt::format("global batch: {} (--batch)", batch_));
    mesh.set("data", sizes.data).set("tensor", axes.tensor).set("pipeline", axes.pipeline);
    if (axes.context > 1) mesh.set("context", axes.context);
    if (axes.expert > 1) mesh.set("expert", axes.expert);
    mesh.set("micro_batches", sizes.micro_batches);
    if (options_.virtual_stages > 1) mesh.set("virtual_stages", options_.virtual_stages);
    divide_blocks(axes.pipeline * given(options_.virtual_stages), mesh);
    mesh.set("distributed_optimizer", true);
    choices_.note(
        "as Megatron-LM's users do: gradients in f32, to which products add, the optimizer divided among replicas, and "
        "rows of norms among tensor-parallel devices");
  }

  // Stages of unequal size where the blocks do not divide.
  void divide_blocks(std::int64_t stages, YamlMap& mesh) const {
    std::int64_t blocks = 0;
    for (const Blocks& run : model_.spec.blocks) blocks += run.copies;
    blocks += model_.spec.predictors;
    if (blocks % stages == 0) return;
    if (blocks < stages) refuse(fmt::format("--pipeline: the model has {} blocks for {} stages", blocks, stages));
    const auto counts = nearly_equal_blocks(static_cast<int>(blocks), static_cast<int>(stages));
    mesh.set("stage_blocks", fmt::format("[{}]", fmt::join(counts, ", ")));
    choices_.note(fmt::format(
        "the {} blocks are divided among {} stages as equally as possible (strategy.stage_blocks)", blocks, stages));
  }

  YamlMap workload(const std::string& model_file) {
    const std::string dtype =
        choices_.word(options_.dtype.empty() ? model_.dtype : options_.dtype, "bf16", "dtype", "--dtype");
    const std::string optimizer = choices_.word(options_.optimizer, "adam", "optimizer", "--optimizer");
    YamlMap workload;
    workload.set("kind", "layers").quote("model", model_file);
    if (!model_.spec.has_fixed_tokens) workload.set("sizes", YamlMap().set("tokens", model_.spec.tokens));
    workload.set("batch", batch_).set("dtype", dtype);
    if (has_mesh_ && dtype.ends_with("16")) workload.set("parameter_dtype", "f32");
    if (!options_.precision.empty()) workload.set("precision", YamlMap().set("compute", options_.precision));
    workload.set("optimizer", optimizer);
    if (has_mesh_) workload.set("stack", YamlMap().set("accumulation", "in_products"));
    if (!options_.dispatch.empty()) {
      YamlMap experts = YamlMap().set("dispatch", options_.dispatch);
      const bool sends_once = options_.dispatch != "all_to_all";
      if (sends_once && model_.groups > 0) {
        experts.set("groups", YamlMap().set("of", model_.groups).set("used", model_.used_groups));
      }
      workload.set("experts", experts);
    }
    if (!model_.lora.empty()) workload.set("lora", model_.lora);
    if (options_.tensor > 1) workload.set("sequence_parallel", true);
    if (options_.recompute) workload.set("activation_checkpointing", true);
    return workload;
  }

  const HuggingFaceModel& model_;
  const std::string& file_;
  Choices& choices_;
  const ImportChoices& options_;
  bool has_mesh_ = false;
  int devices_ = 1, workers_ = 1;
  std::int64_t batch_ = 1;
};

}  // namespace

std::string sharding_strategy() {
  for (const std::string& name : strategy_names()) {
    const StrategyInfo& info = strategy_info(name);
    if (info.division && info.division->axis == &ParallelOptions::data) return name;
  }
  return std::string(default_strategy_name());
}

std::string mesh_strategy() {
  for (const std::string& name : strategy_names()) {
    if (strategy_info(name).has_free_mesh()) return name;
  }
  return sharding_strategy();
}

std::string scenario_of(const HuggingFaceModel& model, const std::string& file, const std::string& model_file,
                        Choices& choices) {
  return HuggingFaceScenario(model, file, choices).text(model_file);
}

}  // namespace tandem
