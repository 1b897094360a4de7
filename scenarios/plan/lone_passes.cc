#include "scenarios/plan/lone_passes.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <string_view>
#include <unordered_map>

#include "scenarios/job/parallel_settings.h"
#include "scenarios/run/runner.h"
#include "scenarios/workloads/mlp_layers.h"
#include "strategies/parallel/layout/pipeline_schedule.h"
#include "strategies/parallel/mesh_division.h"
#include "strategies/parallel/stages/streams.h"

namespace tandem {
namespace {

// Micro-batches of the simulation: the first one, another one, and one in which gradients are summed.
constexpr int kPasses = 3;
constexpr std::string_view kGradient = "gradient", kWeightGradient = "weight gradient", kAccumulation = "accumulate";

// A model of whose many equal blocks, one after the other, only a few are left.
struct ShorterModel {
  static constexpr std::size_t kLeft = 3;  // the first, one between others, the last

  std::vector<Layer> layers{};
  std::vector<std::size_t> places{};  // in these, by layer of the model

  // `is_whole`: with all blocks.
  ShorterModel(const std::vector<Layer>& all, bool is_whole) : places(all.size()) {
    for (std::size_t first = 0; first < all.size();) {
      const std::size_t length = length_of_block(all, first);
      std::size_t copies = 1;
      while (!is_whole && is_copy(all, first, first + copies * length, length)) ++copies;
      for (std::size_t copy = 0; copy < copies; ++copy) add(all, first + copy * length, length, copy, copies);
      first += copies * length;
    }
  }

 private:
  static std::size_t length_of_block(const std::vector<Layer>& all, std::size_t first) {
    std::size_t end = first + 1;
    while (all[first].block && end < all.size() && all[end].block == all[first].block) ++end;
    return end - first;
  }

  // Whether the block at `other` does the same as the one at `first`.
  static bool is_copy(const std::vector<Layer>& all, std::size_t first, std::size_t other, std::size_t length) {
    if (!all[first].block || other + length > all.size() || length_of_block(all, other) != length) return false;
    for (std::size_t i = 0; i < length; ++i) {
      Layer one = all[first + i], two = all[other + i];
      if (!two.block || two.block->group != one.block->group) return false;
      two.name = one.name;
      two.block = one.block;
      if (one != two) return false;
    }
    return true;
  }

  void add(const std::vector<Layer>& all, std::size_t first, std::size_t length, std::size_t copy, std::size_t copies) {
    const bool is_left = copies <= kLeft || copy < 2 || copy + 1 == copies;
    for (std::size_t i = 0; i < length; ++i) {
      places[first + i] = is_left ? layers.size() : places[first + i - length];
      if (is_left) layers.push_back(all[first + i]);
    }
  }
};

// Whether the schedule leaves gradients of weights for later.
bool leaves_weights(const Job& job) {
  const auto* how = has_stages(job) ? dynamic_cast<const MeshDivision*>(job.strategy.division->how.get()) : nullptr;
  return how != nullptr && has_passes_of_weights(how->schedule(0, *job.mesh));
}

// Returns one replica on one stage, with kPasses micro-batches. Devices along data remain where they divide experts:
// what these exchange is part of a pass. Parameters in pieces, or that are gathered in fewer bits, are in one piece.
Scenario one_stage_of(const Job& job) {
  const ParallelOptions& mesh = *job.mesh;
  Scenario alone = job.scenario;
  // Sums of gradients of inputs have no gradients of weights beside them where these come later.
  if (auto* layers = std::get_if<LayersSettings>(&alone.workload.kind); layers != nullptr && leaves_weights(job))
    layers->overlap_tensor = false;
  MeshSettings& settings = alone.strategy.mesh;
  const int with_experts = mesh.context * mesh.tensor / mesh.expert_parts();
  settings.data = mesh.expert / std::gcd(mesh.expert, with_experts);
  alone.evaluation.reset();
  settings.replicate = 1;
  settings.pipeline = settings.virtual_stages = 1;
  settings.stage_blocks.clear();
  settings.order = PipelineOrder::one_forward_one_backward;
  settings.overlap_experts = false;
  settings.distributed_optimizer = job.layers != nullptr && job.layers->gathers_quantised && !mesh.shard_parameters;
  settings.overlap_gather = false;
  settings.micro_batches = kPasses;
  alone.workload.batch = static_cast<int>(examples_of_pass(job) * kPasses * settings.data);
  const int devices = settings.data * mesh.context * mesh.tensor;
  alone.devices.per_worker = std::min(devices, job.scenario.devices.per_worker);
  alone.devices.workers = (devices + alone.devices.per_worker - 1) / alone.devices.per_worker;
  return alone;
}

// The layers of a model by the names that their ops begin with.
class LayersByName {
 public:
  explicit LayersByName(const Model& model) : all_(model.layers) {
    for (std::size_t i = 0; i < model.layers.size(); ++i) layers_.try_emplace(model.layers[i].name, i);
  }

  const Layer& layer(std::size_t index) const { return all_[index]; }
  // Returns the layer of an op, "block.0.query" of "block.0.query then"; the number of layers for other ops.
  std::size_t of(const Name& op) {
    const auto [known, is_new] = known_.try_emplace(op.text(), layers_.size());
    if (!is_new) return known->second;
    for (std::string_view name = op.text(); !name.empty();) {
      const auto found = layers_.find(name);
      if (found != layers_.end()) return known->second = found->second;
      const std::size_t space = name.rfind(' ');
      name = space == std::string_view::npos ? std::string_view() : name.substr(0, space);
    }
    return known->second;
  }

 private:
  const std::vector<Layer>& all_;
  std::unordered_map<std::string_view, std::size_t> layers_;
  std::unordered_map<std::string_view, std::size_t> known_;  // texts of names live as long as the process
};

// What replicas exchange is not part of a pass.
bool is_work(const Record& record, int step) {
  return record.device == 0 && record.step == step && record.kind != RecordKind::step &&
         record.stream != kCommunicationStream && record.category != Category::input &&
         record.category != Category::update;
}

bool is_all_to_all(const Record& record) {
  return record.kind == RecordKind::collective && record.name == name_of(CollectiveKind::all_to_all);
}

bool has(const Name& name, std::string_view part) {
  return name.text().find(part) != std::string::npos;
}

// What is part of a pass.
struct Counted {
  bool all_to_all = true;
  bool accumulation = true;    // of gradients of passes: of pieces, each device has less than one that has them all
  bool later_weights = false;  // some of it comes later

  bool has(const Record& record) const {
    return (all_to_all || !is_all_to_all(record)) && (accumulation || record.name.text() != kAccumulation);
  }
};

bool has_pieces(const Job& job) {
  return job.mesh && (job.mesh->shard_parameters || !has_stages(job));
}

using Actions = std::vector<PipelineAction>;

// The passes of a strategy's own order on one stage.
Actions actions_of(const Job& job, const Scenario& alone) {
  if (!has_stages(job)) return {};
  const auto* how = dynamic_cast<const MeshDivision*>(job.strategy.division->how.get());
  return how != nullptr ? how->schedule(0, parallel_options(alone)) : one_forward_one_backward(0, 1, kPasses);
}

// Follows the work of the first device in the last step, pass by pass. What is no op of a layer, such as a collective,
// belongs to that of the op before it. Ops of a backward pass have "gradient" in their names, or come before one that
// has, as what is computed again does; the pass ends with the gradients of the first layer that has any.
class PassReader {
 public:
  // `actions`: the order of the passes; empty: whatever their number, each forward one is followed by its backward one.
  PassReader(const Timeline& timeline, const Model& model, const Actions& actions, Counted counted)
      : layers_(model), count_(model.layers.size()), actions_(actions), counted_(counted) {
    for (const Record& record : timeline.records) step_ = std::max(step_, record.step);
    for (const Record& record : timeline.records) {
      if (!is_of_layer(record) || !has(record.name, kGradient)) continue;
      last_ = std::min(last_, layers_.of(record.name));
    }
    for (const Record& record : timeline.records) read(record);  // by start
  }

  // By micro-batch. Empty where the ops are not those of the actions.
  std::vector<std::vector<LonePass>> passes() const {
    const bool is_as_expected = actions_.empty() || (number_ + 1 == actions_.size() && is_ending_);
    return is_as_expected ? passes_ : std::vector<std::vector<LonePass>>();
  }

 private:
  bool is_of_layer(const Record& record) {
    return is_work(record, step_) && record.kind == RecordKind::op && record.stream == kComputeStream &&
           layers_.of(record.name) < count_;
  }

  void read(const Record& record) {
    if (!is_work(record, step_) || !counted_.has(record)) return;
    // Some layers have them beside their gradients of weights, also where others leave these for later.
    const bool is_beside = record.kind == RecordKind::collective && !is_all_to_all(record) &&
                           (record.stream == kComputeStream || record.stream == kTensorStream);
    if (counted_.later_weights && is_beside && action().pass != PipelineAction::Pass::forward) return;
    if (is_of_layer(record)) begin_op(layers_.of(record.name), has(record.name, kGradient));
    const Nanoseconds begin = std::max(until_, record.start_ns);
    until_ = std::max(until_, record.end_ns);
    const double seconds = static_cast<double>(std::max<Nanoseconds>(0, record.end_ns - begin)) * 1e-9;
    const PipelineAction now = action();
    const auto micro_batch = static_cast<std::size_t>(now.micro_batch);
    while (passes_.size() <= micro_batch) passes_.emplace_back(count_);
    LonePass& pass = passes_[micro_batch][layer_];
    (now.pass == PipelineAction::Pass::forward ? pass.forward_s : pass.backward_s) += seconds;
    const Layer& layer = layers_.layer(layer_);
    const bool is_deferrable = layer.parameters() > 0 && !(layer.gemm && layer.gemm->batched);
    if (now.pass == PipelineAction::Pass::forward || !is_deferrable) return;
    if (has(record.name, kWeightGradient)) {
      pass.weights_s += seconds;
    } else if (layer.embedding || record.name.text() == kAccumulation) {
      pass.either_s += seconds;
    }
  }

  // The action that is under way.
  PipelineAction action() const {
    if (number_ < actions_.size()) return actions_[number_];
    const auto kind = number_ % 2 == 0 ? PipelineAction::Pass::forward : PipelineAction::Pass::backward;
    return {.pass = kind, .micro_batch = static_cast<int>(number_ / 2)};
  }

  bool is_forward_next() const {
    return number_ + 1 < actions_.size() && actions_[number_ + 1].pass == PipelineAction::Pass::forward;
  }

  void begin_op(std::size_t layer, bool is_gradient) {
    const bool is_forward = action().pass == PipelineAction::Pass::forward;
    const bool ends_forward = is_forward && (is_gradient || (is_forward_next() && layer < layer_));
    const bool ends_backward = !is_forward && is_ending_ && (!is_gradient || layer > last_);
    if (ends_forward || ends_backward) {
      ++number_;
      is_ending_ = false;
    }
    layer_ = layer;
    is_ending_ = is_ending_ || (is_gradient && layer <= last_);
  }

  LayersByName layers_;
  std::size_t count_;
  Actions actions_;
  Counted counted_;
  int step_ = kNoStep;
  std::size_t last_ = std::numeric_limits<std::size_t>::max();  // layer of a backward pass
  std::vector<std::vector<LonePass>> passes_{};
  std::size_t number_ = 0, layer_ = 0;  // of the action that is under way, and of its layer
  bool is_ending_ = false;
  Nanoseconds until_ = 0;
};

// Returns one replica with the most examples that any has. Those of an asynchronous step need not wait for it.
Scenario one_replica_of(const Job& job) {
  Scenario alone = one_replica_of(job.scenario, static_cast<int>(job.devices));
  if (job.servers == 0) alone.workload.batch = static_cast<int>(examples_of_pass(job));
  return alone;
}

RunResult quick_run(Scenario alone, int devices_in_step) {
  alone.steps = 2;
  alone.warmup_steps = 1;
  return run_scenario(alone, {.measures_scaling = false,
                              .is_quick = true,
                              .figures = Figures::of_steps,
                              .only_report = true,
                              .has_all_memory = true,
                              .devices_in_step = devices_in_step});
}

// By layer of the model, of those of a shorter one.
std::vector<LonePass> of_all_layers(const std::vector<LonePass>& passes, const ShorterModel& shorter) {
  std::vector<LonePass> all;
  for (const std::size_t place : shorter.places) all.push_back(passes[place]);
  return all;
}

LonePasses passes_of(const Timeline& timeline, const Model& model, const ShorterModel& shorter, const Actions& actions,
                     Counted counted) {
  const std::vector<std::vector<LonePass>> passes = PassReader(timeline, model, actions, counted).passes();
  if (!actions.empty()) {
    if (passes.size() != kPasses) return {};  // a model without gradients, or gradients of weights that come later
    return {.first = of_all_layers(passes[0], shorter), .more = of_all_layers(passes[1], shorter)};
  }
  std::vector<LonePass> step(model.layers.size());
  for (const std::vector<LonePass>& pass : passes) {
    for (std::size_t i = 0; i < pass.size(); ++i) step[i].forward_s += pass[i].both_s();
  }
  return {.first = of_all_layers(step, shorter), .more = {}};
}

// Where a stage computes only some of its blocks again, equal blocks do different things. On one stage, no more of them
// are among these than on several.
bool does_the_same_in_blocks(const LayersSettings& layers) {
  return !layers.recomputed.any || layers.recomputed == RecomputedBlocks{.any = true};
}

LoneWork work_of_layers(const Job& job, Scenario& alone) {
  auto& layers = std::get<LayersSettings>(alone.workload.kind);
  layers.offload = {};
  const ShorterModel shorter(layers.model.layers, !does_the_same_in_blocks(layers));
  layers.model.layers = shorter.layers;
  const Actions actions = actions_of(job, alone);
  const Timeline timeline = quick_run(alone, job.devices_in_step).timeline;
  const bool accumulates = !has_pieces(job), later = leaves_weights(job);
  const auto passes = [&](Counted counted) { return passes_of(timeline, layers.model, shorter, actions, counted); };
  return {.all = passes({.accumulation = accumulates, .later_weights = later}),
          .unhidden = passes({.all_to_all = false, .accumulation = accumulates, .later_weights = later})};
}

// The kernels of a perceptron are so short that devices wait for the host between them, whatever other replicas do.
LoneWork work_of_perceptron(const Job& job, const Scenario& alone) {
  const RunResult result = quick_run(alone, job.devices_in_step);
  if (!job.divides_model && job.servers == 0) {
    constexpr Nanoseconds kRounding = 1;
    const Nanoseconds step_ns = result.report.summary.step_time.mean - kRounding;
    const LonePass step{.forward_s = static_cast<double>(step_ns) * 1e-9};
    return {.all = {.first = {step}}, .unhidden = {.first = {step}}};
  }
  const Model model = layers_of(*job.mlp).model;
  const LonePasses passes = passes_of(result.timeline, model, ShorterModel(model.layers, true), actions_of(job, alone),
                                      {.later_weights = leaves_weights(job)});
  return {.all = passes, .unhidden = passes};
}

// Curves of processors are those of the nearest number of devices and of the memory in use, which are others where one
// device is alone.
bool has_measured_processors(const Job& job) {
  const Topology& topology = *job.scenario.topology;
  const std::vector<NodeIndex> processors = topology.nodes_of(0, NodeKind::cpu);
  return job.scenario.devices.type == DeviceType::cpu && std::ranges::any_of(processors, [&](NodeIndex one) {
           return topology.device(one) && !topology.device(one)->rates.empty();
         });
}

}  // namespace

bool has_stages(const Job& job) {
  return job.strategy.division && job.strategy.division->axis != &ParallelOptions::data;
}

std::int64_t examples_of_pass(const Job& job) {
  const std::int64_t batch = job.scenario.workload.batch;
  if (has_stages(job)) return batch / job.mesh->data / job.mesh->micro_batches;
  return job.servers > 0 ? batch / job.devices : (batch + job.devices - 1) / job.devices;
}

std::optional<LoneWork> lone_work(const Job& job) {
  if (job.trace != nullptr || !job.models_machine || examples_of_pass(job) == 0) return std::nullopt;
  if (has_measured_processors(job)) return std::nullopt;
  try {
    Scenario alone = has_stages(job) ? one_stage_of(job) : one_replica_of(job);
    return job.mlp != nullptr ? work_of_perceptron(job, alone) : work_of_layers(job, alone);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace tandem
