#include "scenarios/estimates/fitting_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "strategies/model/lora.h"
#include "strategies/model/offload.h"
#include "strategies/model/recomputation.h"
#include "strategies/parallel/division.h"

namespace tandem {
namespace {

constexpr std::size_t kMostShown = 4;
constexpr std::int64_t kMostParts = 1 << 16;  // of a batch

LayersSettings& settings_in(Scenario& scenario) {
  return std::get<LayersSettings>(scenario.workload.kind);
}

// Products of which the results are not kept are computed a second time; a step has three for each forward one.
double share_again(const Scenario& scenario) {
  const auto& settings = std::get<LayersSettings>(scenario.workload.kind);
  const std::vector<Layer>& layers = settings.model.layers;
  const Recomputation recomputation(layers, settings.recomputed);
  double again = 0;
  const double all = training_macs(settings.model);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const auto macs = static_cast<double>(layers[i].forward_macs());
    const Layer::Again how = recomputation.again(i);
    if (how == Layer::Again::everything || how == Layer::Again::everything_but_output) again += macs;
  }
  return all > 0 ? again / all : 0;
}

// Changes the scenario, and returns how; nothing where it has nothing to change.
using MemoryChange = std::function<std::optional<std::string>(Scenario&)>;

std::optional<std::string> fuse_attention(Scenario& scenario) {
  LayersSettings& layers = settings_in(scenario);
  const bool has_scores =
      std::ranges::any_of(layers.model.layers, [](const Layer& layer) { return layer.scores != Layer::Scores::none; });
  if (!has_scores || !layers.stack.keeps_scores()) return std::nullopt;
  layers.stack.attention = AttentionKernels::flash;
  return "workload.stack.attention: flash";
}

std::optional<std::string> fuse_loss(Scenario& scenario) {
  LayersSettings& layers = settings_in(scenario);
  if (!layers.model.has_operation(Pointwise::cross_entropy) || layers.stack.loss == Loss::fused) return std::nullopt;
  layers.stack.loss = Loss::fused;
  return "workload.stack.loss: fused";
}

std::optional<std::string> divide_optimizer(Scenario& scenario) {
  MeshSettings& mesh = scenario.strategy.mesh;
  if (mesh.data * mesh.context == 1 || mesh.distributed_optimizer || mesh.shard_parameters) return std::nullopt;
  mesh.distributed_optimizer = true;
  return "strategy.distributed_optimizer: true";
}

std::optional<std::string> shard_parameters(Scenario& scenario) {
  MeshSettings& mesh = scenario.strategy.mesh;
  if (mesh.data * mesh.context == 1 || mesh.shard_parameters) return std::nullopt;
  std::string text = "strategy.shard_parameters: true";
  if (std::exchange(mesh.distributed_optimizer, false)) text += ", strategy.distributed_optimizer: false";
  if (std::exchange(mesh.overlap_gather, false)) text += ", strategy.overlap_gather: false";
  mesh.shard_parameters = true;
  return text;
}

// As many micro-batches of each replica, or passes over its part of the batch.
MemoryChange micro_batches(int count) {
  return [count](Scenario& scenario) -> std::optional<std::string> {
    scenario.strategy.mesh.micro_batches = count;
    return fmt::format("strategy.micro_batches: {}", count);
  };
}

MemoryChange passes(int count) {
  return [count](Scenario& scenario) -> std::optional<std::string> {
    settings_in(scenario).gradient_accumulation_steps = count;
    return fmt::format("workload.gradient_accumulation_steps: {}", count);
  };
}

// Returns all numbers of equal parts above `now` into which so many examples can be divided, in rising order.
std::vector<int> more_parts(std::int64_t examples, std::int64_t now) {
  std::vector<int> parts;
  for (std::int64_t count = now + 1; count <= std::min(examples, kMostParts); ++count) {
    if (examples % count == 0) parts.push_back(static_cast<int>(count));
  }
  return parts;
}

MemoryChange recompute_one(std::string_view module) {
  return [module](Scenario& scenario) -> std::optional<std::string> {
    LayersSettings& layers = settings_in(scenario);
    if (layers.recomputed.any || has_recomputed_layers(layers.model)) return std::nullopt;
    if (recompute_module(module, layers.model)) return std::nullopt;
    join_recomputed_layers(layers.model);
    return fmt::format("workload.activation_checkpointing: {{modules: [{}]}}", module);
  };
}

MemoryChange offload_blocks(int count) {
  return [count](Scenario& scenario) -> std::optional<std::string> {
    LayersSettings& layers = settings_in(scenario);
    if (count < 1 || layers.offload.any() || layers.learning) return std::nullopt;
    layers.offload.blocks = count;
    return fmt::format("workload.offload: {{activations: {}}}", count);
  };
}

// Returns the blocks that every stage has at least, where they are divided equally.
int blocks_of_stage(const Job& job) {
  const std::vector<OffloadSegment> segments =
      offload_segments(job.layers->model.layers, static_cast<int>(job.layers->model.layers.size()));
  const auto blocks = std::ranges::count(segments, true, &OffloadSegment::is_offloaded);
  return static_cast<int>(blocks) / job.mesh->stages();
}

std::optional<std::string> recompute_blocks(Scenario& scenario) {
  LayersSettings& layers = settings_in(scenario);
  const bool has_blocks =
      std::ranges::any_of(layers.model.layers, [](const Layer& layer) { return layer.block.has_value(); });
  if (!has_blocks || layers.recomputed.any || has_recomputed_layers(layers.model)) return std::nullopt;
  layers.recomputed.any = true;
  return "workload.activation_checkpointing: true";
}

// Kernels and layouts that cost no time, more and smaller parts of the batch, what the host keeps, and what is computed
// again.
struct MemoryChanges {
  std::vector<MemoryChange> free{}, state{}, pieces{}, smaller{}, host{}, again{};
};

MemoryChanges memory_changes(const Job& job) {
  MemoryChanges changes{.free = {fuse_attention, fuse_loss}};
  if (job.mesh && job.strategy.has_free_mesh()) {
    changes.state.emplace_back(divide_optimizer);
    changes.pieces.emplace_back(shard_parameters);
    const int blocks = blocks_of_stage(job);
    changes.host = {offload_blocks(blocks / 2), offload_blocks(blocks - 1)};
  }
  const std::int64_t batch = job.scenario.workload.batch;
  if (job.mesh && job.strategy.division->micro_batches) {
    const std::int64_t of_replica = batch / std::max(1, job.mesh->data);
    for (const int count : more_parts(of_replica, job.mesh->micro_batches)) {
      changes.smaller.push_back(micro_batches(count));
    }
  } else {
    const std::int64_t of_replica = batch / std::max<std::int64_t>(1, job.devices);
    for (const int count : more_parts(of_replica, job.layers->gradient_accumulation_steps)) {
      changes.smaller.push_back(passes(count));
    }
  }
  for (const std::string_view module : {"moe_act", "act", "layernorm", "core_attn", "mlp", "moe"}) {
    changes.again.push_back(recompute_one(module));
  }
  changes.again.emplace_back(recompute_blocks);
  return changes;
}

// A scenario with changes, and whether its devices have enough memory then.
struct Tried {
  Scenario scenario;
  bool may_be_over;  // the estimate, by its uncertainty
  std::string text{};
  std::optional<MemoryNeed> need{};

  Tried(const Job& job, bool is_tolerant) : scenario(job.scenario), may_be_over(is_tolerant), need(memory_need(job)) {}

  // Returns whether there was something to change; `need` is then that of the result.
  bool apply(const MemoryChange& change) {
    const std::optional<std::string> changed = change(scenario);
    if (!changed) return false;
    need = memory_need(job_of(scenario));
    text += (text.empty() ? "" : ", ") + *changed;
    return need.has_value();
  }
  bool fits() const { return need && (may_be_over ? need->fits() : need->is_within()); }
  FittingChange result() const { return {text, *need, share_again(scenario)}; }
};

// Returns the first of these changes with which it fits.
std::optional<FittingChange> first_that_fits(const Tried& before, const std::vector<MemoryChange>& changes) {
  for (const MemoryChange& change : changes) {
    Tried tried = before;
    if (tried.apply(change) && tried.fits()) return tried.result();
  }
  return std::nullopt;
}

// Adds those changes one by one that make the need smaller.
void apply_all(Tried& tried, const std::vector<MemoryChange>& changes) {
  for (const MemoryChange& change : changes) {
    Tried next = tried;
    if (next.apply(change) && next.need->total() < tried.need->total()) tried = std::move(next);
  }
}

// Smaller parts of the batch, then the smallest of them with something computed again.
std::optional<FittingChange> with_less_at_once(const Tried& tried, const MemoryChanges& changes) {
  if (tried.fits()) return tried.result();
  Tried smallest = tried;
  for (const MemoryChange& smaller : changes.smaller) {
    Tried next = tried;
    if (!next.apply(smaller)) continue;
    if (next.fits()) return next.result();
    smallest = std::move(next);
  }
  return first_that_fits(smallest, changes.again);
}

// All that is free, with whole parameters if that will do.
std::optional<FittingChange> together(Tried whole, const MemoryChanges& changes) {
  if (!whole.need) return std::nullopt;
  apply_all(whole, changes.free);
  Tried pieces = whole;
  apply_all(whole, changes.state);
  if (auto found = with_less_at_once(whole, changes)) return found;
  apply_all(pieces, changes.pieces);
  return with_less_at_once(pieces, changes);
}

std::vector<FittingChange> changes_from(const Tried& now, const MemoryChanges& changes) {
  std::vector<FittingChange> found;
  const auto add = [&](const std::vector<MemoryChange>& one_of_these) {
    if (const auto fitting = first_that_fits(now, one_of_these)) found.push_back(*fitting);
  };
  for (const MemoryChange& change : changes.free) add({change});
  add(changes.state);
  add(changes.smaller);
  add(changes.pieces);
  add(changes.host);
  for (const MemoryChange& change : changes.again) add({change});
  std::ranges::stable_sort(found, {}, &FittingChange::again);
  if (!found.empty()) return found;
  if (const auto all = together(now, changes)) found.push_back(*all);
  return found;
}

}  // namespace

std::vector<FittingChange> changes_that_fit(const Job& job) {
  if (job.layers == nullptr) return {};
  const MemoryChanges changes = memory_changes(job);
  const std::vector<FittingChange> found = changes_from(Tried(job, false), changes);
  return found.empty() ? changes_from(Tried(job, true), changes) : found;
}

std::string text_of(const std::vector<FittingChange>& changes) {
  if (changes.empty()) return "no smaller micro-batches and nothing computed again are enough: it needs more devices";
  std::vector<std::string> texts;
  for (const FittingChange& change : changes) {
    if (texts.size() == kMostShown) break;
    const std::string again = change.again > 0 ? fmt::format(", {:.0f} % of the flops again", 100 * change.again) : "";
    texts.push_back(fmt::format("{} ({}{})", change.text, memory_size_text(change.need.total()), again));
  }
  const bool is_sure = changes.front().need.is_within();
  std::string all = texts.front();
  for (std::size_t i = 1; i < texts.size(); ++i) all += (i + 1 < texts.size() ? ", " : " or ") + texts[i];
  return (is_sure ? "it fits with " : "it may fit with ") + all;
}

}  // namespace tandem
