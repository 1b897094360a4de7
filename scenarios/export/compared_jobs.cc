#include "scenarios/export/compared_jobs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "scenarios/export/job_writer.h"

namespace tandem {
namespace {

// Words of scenarios, in the order of the values that they name.
constexpr std::array<std::string_view, 4> kOptimizers{"sgd", "momentum", "adam", "lamb"};
constexpr std::array<std::string_view, 4> kQuantised{"none", "fp8", "mxfp8", "nvfp4"};
constexpr std::array<std::string_view, 4> kRecipes{"tensorwise", "delayed", "rowwise", "blockwise"};
constexpr std::array<std::string_view, 3> kDispatches{"all_to_all", "deepep", "hybridep"};
constexpr std::array<std::string_view, 4> kAttentions{"separate", "fused_softmax", "flash", "flash_1"};
constexpr std::array<std::string_view, 2> kAccumulations{"separate", "in_products"};
constexpr std::array<std::string_view, 2> kLosses{"separate", "fused"};
constexpr std::array<std::string_view, 3> kExpertKernels{"separate", "grouped", "fused"};

template <typename Words, typename Value>
std::string shown_word(const Words& words, Value value) {
  return std::string(words.at(static_cast<std::size_t>(value)));
}

std::string shown_value(bool value) {
  return value ? "true" : "false";
}
std::string shown_value(std::int64_t value) {
  return std::to_string(value);
}
std::string shown_value(int value) {
  return std::to_string(value);
}
std::string shown_value(double value) {
  return fmt::format("{}", value);
}
std::string shown_value(const std::string& value) {
  return value;
}

std::string shown_moments(const LayersSettings& layers) {
  const auto of = [](std::optional<DType> type) { return type ? std::string(name_of(*type)) : "f32"; };
  return fmt::format("{{first: {}, second: {}}}", of(layers.moments.first), of(layers.moments.second));
}

std::string shown_blocks(const RecomputedBlocks& blocks) {
  if (!blocks.any) return "no whole blocks";
  if (blocks.first > 0) return fmt::format("{{first: {}}}", blocks.first);
  if (blocks.every > 1) return fmt::format("{{every: {}}}", blocks.every);
  return blocks.together > 1 ? fmt::format("{{together: {}}}", blocks.together) : "true";
}

std::vector<int> blocks_of_stages(const ParallelOptions& layout) {
  return layout.stages() == 1 ? std::vector<int>{} : layout.stage_blocks;
}

std::string shown_stages(const ParallelOptions& layout) {
  const std::vector<int> blocks = blocks_of_stages(layout);
  return blocks.empty() ? "equally many" : fmt::format("[{}]", fmt::join(blocks, ", "));
}

// Equal numbers are no numbers.
ParallelOptions with_usual_stages(ParallelOptions layout) {
  const auto& blocks = layout.stage_blocks;
  if (std::ranges::adjacent_find(blocks, std::ranges::not_equal_to()) == blocks.end()) layout.stage_blocks.clear();
  return layout;
}

bool divides_data(const Scenario& scenario) {
  return strategy_info(scenario.strategy.name).division->axis == &ParallelOptions::data;
}

std::string shown_fidelity(const Scenario& scenario) {
  return scenario.engine.collectives == CollectiveFidelity::message ? "message" : "fluid";
}

class JobComparison {
 public:
  JobComparison(const Scenario& given, const Scenario& read)
      : given_(given),
        read_(read),
        mine_(std::get<LayersSettings>(given.workload.kind)),
        its_(std::get<LayersSettings>(read.workload.kind)),
        layout_(with_usual_stages(layout_of(given))),
        its_layout_(with_usual_stages(layout_of(read))) {}

  std::vector<JobDifference> differences() {
    compare_mesh();
    compare_overlaps();
    compare_training();
    compare_types();
    add_model_differences(mine_.model, its_.model, layout_.tensor, all_);
    compare_experts();
    compare_stack();
    compare_engine();
    return std::move(all_);
  }

 private:
  template <typename Value>
  void layout(const char* key, const Value& given, const Value& read) {
    if (given != read) all_.push_back({key, shown_value(given), shown_value(read), true});
  }
  template <typename Value>
  void kernels(const char* key, const Value& given, const Value& read) {
    if (given != read) all_.push_back({key, shown_value(given), shown_value(read), false});
  }

  void compare_mesh() {
    const ParallelOptions &a = layout_, &b = its_layout_;
    layout("strategy.data", a.data, b.data);
    layout("strategy.tensor", a.tensor, b.tensor);
    layout("strategy.context", a.context, b.context);
    layout("strategy.pipeline", a.pipeline, b.pipeline);
    layout("strategy.expert", a.expert, b.expert);
    if (a.expert > 1 || a.expert_parts() < a.tensor)
      layout("strategy.expert_tensor", a.expert_parts(), b.expert_parts());
    if (a.context > 1) layout("strategy.context_exchange", name_of(a.context_exchange), name_of(b.context_exchange));
    if (a.pipeline > 1 && a.data > 1) layout("strategy.axis_order", name_of(a.axis_order), name_of(b.axis_order));
    layout("strategy.micro_batches", a.micro_batches, b.micro_batches);
    layout("strategy.schedule", name_of(a.order), name_of(b.order));
    layout("strategy.virtual_stages", a.chunks(), b.chunks());
    layout("strategy.stage_blocks", shown_stages(a), shown_stages(b));
    const bool has_replicas = a.replicas() > 1;
    if (has_replicas) {
      layout("strategy.shard_parameters", a.shard_parameters, b.shard_parameters);
      layout("strategy.distributed_optimizer", a.distributed_optimizer, b.distributed_optimizer);
    }
    if (a.shard_parameters || a.distributed_optimizer) layout("strategy.replicate", a.replicate, b.replicate);
    // Pieces of all parameters are gathered and freed by another rule than in a mesh.
    if (divides_data(given_) != divides_data(read_))
      kernels("strategy.name", given_.strategy.name, read_.strategy.name);
  }

  void compare_overlaps() {
    const ParallelOptions &a = layout_, &b = its_layout_;
    const bool has_replicas = a.replicas() > 1;
    if (a.distributed_optimizer && has_replicas) kernels("strategy.overlap_gather", a.overlap_gather, b.overlap_gather);
    if (a.tensor > 1 && a.pipeline > 1) kernels("strategy.scatter_gather", a.scatter_gather, b.scatter_gather);
    kernels("strategy.overlap_experts", a.overlap_experts, b.overlap_experts);
    kernels("strategy.overlap_shared_expert", a.overlap_shared_expert, b.overlap_shared_expert);
    if (has_replicas) {
      kernels("workload.overlap", mine_.overlap, its_.overlap);
      kernels("workload.bucket_bytes", mine_.bucket_bytes, its_.bucket_bytes);
    }
    if (a.tensor == 1) return;
    kernels("workload.overlap_tensor", mine_.overlap_tensor, its_.overlap_tensor);
    kernels("workload.overlap_products", mine_.overlap_products, its_.overlap_products);
  }

  void compare_training() {
    layout("workload.batch", given_.workload.batch, read_.workload.batch);
    layout("workload.optimizer", shown_word(kOptimizers, mine_.optimizer), shown_word(kOptimizers, its_.optimizer));
    if (moments_of(mine_.optimizer) > 0)
      layout("workload.precision.moments", shown_moments(mine_), shown_moments(its_));
    if (layout_.tensor > 1) layout("workload.sequence_parallel", mine_.sequence_parallel, its_.sequence_parallel);
    layout("workload.activation_checkpointing", shown_blocks(mine_.recomputed), shown_blocks(its_.recomputed));
    layout("workload.offload.activations", mine_.offload.blocks, its_.offload.blocks);
    layout("workload.offload.optimizer", mine_.offload.optimizer, its_.offload.optimizer);
    if (mine_.packed)
      kernels("workload.sequences", std::string("documents that share sequences"), std::string("whole sequences"));
    if (given_.workload.spread) kernels("workload.spread", *given_.workload.spread, 0.0);
  }

  void compare_types() {
    const auto name = [](DType type) { return std::string(name_of(type)); };
    layout("workload.dtype", name(mine_.dtype), name(its_.dtype));
    layout("workload.parameter_dtype", name(mine_.parameter_type()), name(its_.parameter_type()));
    layout("workload.precision.compute", shown_word(kQuantised, mine_.quantised),
           shown_word(kQuantised, its_.quantised));
    if (mine_.quantised == Quantised::none) return;
    if (mine_.quantised == Quantised::fp8)
      layout("workload.precision.recipe", shown_word(kRecipes, mine_.recipe), shown_word(kRecipes, its_.recipe));
    const bool gathers = layout_.replicas() > 1 && (layout_.shard_parameters || layout_.distributed_optimizer);
    if (gathers) kernels("workload.precision.gather", mine_.gathers_quantised, its_.gathers_quantised);
  }

  void compare_experts() {
    const ExpertSettings &a = mine_.experts, &b = its_.experts;
    if (!std::ranges::any_of(mine_.model.layers, has_experts)) return;
    kernels("workload.experts.capacity", a.capacity, b.capacity);
    if (!a.popularity.empty())
      kernels("workload.experts.popularity", std::string("given"), std::string("that of a router"));
    kernels("workload.stack.experts", shown_word(kExpertKernels, mine_.stack.experts),
            shown_word(kExpertKernels, its_.stack.experts));
    if (layout_.expert == 1) return;
    kernels("workload.experts.dispatch", shown_word(kDispatches, a.dispatch), shown_word(kDispatches, b.dispatch));
    const auto bytes = [](bool is_fp8) { return std::string(is_fp8 ? "fp8" : "dtype"); };
    kernels("workload.experts.dispatch_dtype", bytes(a.dispatches_bytes), bytes(b.dispatches_bytes));
    kernels("workload.experts.groups", a.groups.count, b.groups.count);
    kernels("workload.experts.groups.used", a.groups.used, b.groups.used);
  }

  void compare_stack() {
    const Stack &a = mine_.stack, &b = its_.stack;
    kernels("workload.stack.fusion", name_of(a.fusion), name_of(b.fusion));
    kernels("workload.stack.attention", shown_word(kAttentions, a.attention), shown_word(kAttentions, b.attention));
    if (layout_.micro_batches > 1)
      kernels("workload.stack.accumulation", shown_word(kAccumulations, a.accumulation),
              shown_word(kAccumulations, b.accumulation));
    kernels("workload.stack.loss", shown_word(kLosses, a.loss), shown_word(kLosses, b.loss));
    kernels("workload.stack.block_host_time", a.block_host_s, b.block_host_s);
  }

  void compare_engine() {
    kernels("engine.graphs", given_.engine.graphs, read_.engine.graphs);
    kernels("engine.collectives", shown_fidelity(given_), shown_fidelity(read_));
    if (given_.engine.nccl != read_.engine.nccl) {
      const auto text = [](const Scenario& one) {
        std::vector<std::string> all;
        for (const auto& [name, value] : one.engine.nccl) all.push_back(fmt::format("{}={}", name, value));
        return all.empty() ? std::string("what NCCL chooses") : fmt::format("{}", fmt::join(all, " "));
      };
      kernels("engine.nccl", text(given_), text(read_));
    }
  }

  const Scenario &given_, &read_;
  const LayersSettings &mine_, &its_;
  ParallelOptions layout_, its_layout_;
  std::vector<JobDifference> all_{};
};

}  // namespace

std::vector<JobDifference> job_differences(const Scenario& given, const Scenario& read) {
  return JobComparison(given, read).differences();
}

}  // namespace tandem
