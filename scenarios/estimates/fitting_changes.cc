#include "scenarios/estimates/fitting_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "strategies/model/recomputation.h"
#include "strategies/parallel/division.h"

namespace tandem {
namespace {

constexpr std::size_t kMostShown = 4;
constexpr int kMostTimes = 1024;  // as many parts of the batch

LayersSettings& settings_in(Scenario& scenario) {
  return std::get<LayersSettings>(scenario.workload.kind);
}

// Products of which the results are not kept are computed a second time; a step has three for each forward one.
double share_again(const Scenario& scenario) {
  const auto& settings = std::get<LayersSettings>(scenario.workload.kind);
  const std::vector<Layer>& layers = settings.model.layers;
  const Recomputation recomputation(layers, settings.recomputed);
  double again = 0, all = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const auto macs = static_cast<double>(layers[i].forward_macs());
    const Layer::Again how = recomputation.again(i);
    if (how == Layer::Again::everything || how == Layer::Again::everything_but_output) again += macs;
    all += 3 * macs;
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
  mesh.shard_parameters = true;
  mesh.distributed_optimizer = mesh.overlap_gather = false;
  return "strategy.shard_parameters: true";
}

MemoryChange more_micro_batches(int times) {
  return [times](Scenario& scenario) -> std::optional<std::string> {
    MeshSettings& mesh = scenario.strategy.mesh;
    const int of_replica = scenario.workload.batch / std::max(1, mesh.data);
    if (of_replica % (mesh.micro_batches * times) != 0) return std::nullopt;
    mesh.micro_batches *= times;
    return fmt::format("strategy.micro_batches: {}", mesh.micro_batches);
  };
}

MemoryChange more_passes(int times, std::int64_t replicas) {
  return [times, replicas](Scenario& scenario) -> std::optional<std::string> {
    int& passes = settings_in(scenario).gradient_accumulation_steps;
    if (scenario.workload.batch % (replicas * passes * times) != 0) return std::nullopt;
    passes *= times;
    return fmt::format("workload.gradient_accumulation_steps: {}", passes);
  };
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

std::optional<std::string> recompute_blocks(Scenario& scenario) {
  LayersSettings& layers = settings_in(scenario);
  const bool has_blocks =
      std::ranges::any_of(layers.model.layers, [](const Layer& layer) { return layer.block.has_value(); });
  if (!has_blocks || layers.recomputed.any || has_recomputed_layers(layers.model)) return std::nullopt;
  layers.recomputed.any = true;
  return "workload.activation_checkpointing: true";
}

// Kernels and layouts that cost no time, more and smaller parts of the batch, and what is computed again.
struct MemoryChanges {
  std::vector<MemoryChange> free{}, pieces{}, smaller{}, again{};
};

MemoryChanges memory_changes(const Job& job) {
  MemoryChanges changes{.free = {fuse_attention, fuse_loss}};
  const bool has_free_mesh = job.mesh && job.strategy.has_free_mesh();
  if (has_free_mesh) {
    changes.free.emplace_back(divide_optimizer);
    changes.pieces.emplace_back(shard_parameters);
  }
  for (int times = 2; times <= kMostTimes; times *= 2) {
    changes.smaller.push_back(has_free_mesh ? more_micro_batches(times) : more_passes(times, job.devices));
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
  std::string text{};
  std::optional<MemoryNeed> need{};

  explicit Tried(const Job& job) : scenario(job.scenario), need(memory_need(job)) {}

  // Returns whether there was something to change; `need` is then that of the result.
  bool apply(const MemoryChange& change) {
    const std::optional<std::string> changed = change(scenario);
    if (!changed) return false;
    need = memory_need(job_of(scenario));
    text += (text.empty() ? "" : ", ") + *changed;
    return need.has_value();
  }
  bool fits() const { return need && need->fits(); }
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
  for (auto smaller = changes.smaller.begin(); smaller != changes.smaller.end(); ++smaller) {
    Tried next = tried;
    if (!next.apply(*smaller)) continue;
    if (next.fits()) return next.result();
    const bool is_last = std::none_of(smaller + 1, changes.smaller.end(), [&](const MemoryChange& more) {
      Tried further = tried;
      return further.apply(more);
    });
    if (is_last) return first_that_fits(next, changes.again);
  }
  return first_that_fits(tried, changes.again);
}

// All that is free, with whole parameters if that will do.
std::optional<FittingChange> together(const Job& job, const MemoryChanges& changes) {
  Tried tried(job);
  if (!tried.need) return std::nullopt;
  apply_all(tried, changes.free);
  if (const auto found = with_less_at_once(tried, changes)) return found;
  apply_all(tried, changes.pieces);
  return with_less_at_once(tried, changes);
}

}  // namespace

std::vector<FittingChange> changes_that_fit(const Job& job) {
  std::vector<FittingChange> found;
  if (job.layers == nullptr) return found;
  const Tried now(job);
  const MemoryChanges changes = memory_changes(job);
  const auto add = [&](const std::vector<MemoryChange>& one_of_these) {
    if (const auto fitting = first_that_fits(now, one_of_these)) found.push_back(*fitting);
  };
  for (const MemoryChange& change : changes.free) add({change});
  add(changes.smaller);
  add(changes.pieces);
  for (const MemoryChange& change : changes.again) add({change});
  std::ranges::stable_sort(found, {}, &FittingChange::again);
  if (!found.empty()) return found;
  if (const auto all = together(job, changes)) found.push_back(*all);
  return found;
}

std::string text_of(const std::vector<FittingChange>& changes) {
  if (changes.empty()) return "no smaller micro-batches and nothing computed again are enough: it needs more devices";
  std::vector<std::string> texts;
  for (const FittingChange& change : changes) {
    if (texts.size() == kMostShown) break;
    const std::string again = change.again > 0 ? fmt::format(", {:.0f} % of the flops again", 100 * change.again) : "";
    texts.push_back(fmt::format("{} ({}{})", change.text, memory_size_text(change.need.total()), again));
  }
  std::string all = texts.front();
  for (std::size_t i = 1; i < texts.size(); ++i) all += (i + 1 < texts.size() ? ", " : " or ") + texts[i];
  return "it fits with " + all;
}

}  // namespace tandem
