#include "scenarios/estimates/device_memory.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "scenarios/job/parallel_settings.h"
#include "strategies/parallel/division.h"
#include "strategies/parallel/layout/gradient_buckets.h"

namespace tandem {
namespace {

constexpr std::int64_t kBuffers = 2;  // of data in transit: one is filled while the other is sent or used

std::int64_t rounded_up(std::int64_t total, std::int64_t parts) {
  return (total + parts - 1) / parts;
}

struct NeediestDevice {
  MemoryNeed need{};
  DeviceShare share{};
};

// Computes the memory of a job's devices.
class MemoryModel {
 public:
  explicit MemoryModel(const Job& job)
      : job_(job), layers_(*job.layers), storage_(layers_.storage()), parameter_type_(layers_.parameter_type()) {}

  NeediestDevice neediest() const {
    NeediestDevice device = job_.mesh ? divided(*job_.strategy.division->how) : replicated();
    reserve(device.need);
    return device;
  }

  // Returns the need of a device that evaluates; nothing where passes of training, over as many examples, hold more.
  std::optional<MemoryNeed> evaluation() const {
    const auto& settings = job_.scenario.evaluation;
    if (!settings || job_.mesh) return std::nullopt;
    const std::int64_t devices = settings->is_beside ? job_.scenario.devices.per_worker : job_.devices;
    const std::int64_t examples = rounded_up(settings->batch, devices);
    MemoryNeed need = settings->is_beside ? MemoryNeed() : replicated().need;
    if (settings->is_beside) {
      need.parameters = layers_.model.parameters() * bytes_of(parameter_type_) +
                        layers_.model.frozen_parameters() * bytes_of(storage_);
      need.optimizer = layers_.model.parameters() * copy_bytes(parameter_type_);
    }
    const ActivationSettings passes = activation_settings(layers_, examples);
    const EvaluationMemory most = evaluation_memory(layers_.model.layers, passes);
    need.activations = 0;
    need.workspace = most.bytes;
    need.input += kBuffers * examples * layers_.model.input_elements * bytes_of(storage_);
    need.cached = std::max(need.cached, cached_logits(layers_.model.layers, passes));
    need.moment = "an evaluation, " + layers_.model.layers[most.layer].name;
    reserve(need);
    return need;
  }

  // Every replica has the whole model, and passes over parts of its examples where gradients are accumulated.
  NeediestDevice replicated() const {
    const std::int64_t replicas = job_.devices;
    const std::int64_t examples = rounded_up(job_.scenario.workload.batch, replicas);
    DeviceShare share{.stages = {{.layers = layers_.model.layers}},
                      .examples = rounded_up(examples, layers_.gradient_accumulation_steps)};
    for (int i = 0; i < layers_.gradient_accumulation_steps; ++i) {
      share.actions.push_back({PipelineAction::Pass::forward, i});
      share.actions.push_back({PipelineAction::Pass::backward, i});
    }
    MemoryNeed need{.input = kBuffers * examples * layers_.model.input_elements * bytes_of(storage_)};
    const std::int64_t parameters = layers_.model.parameters();
    add_parameters(need, parameters, parameter_type_, job_.servers == 0);
    need.parameters += layers_.model.frozen_parameters() * bytes_of(storage_);
    const std::int64_t bucket = largest_bucket(layers_.model.layers, layers_.bucket_bytes, bytes_of(parameter_type_));
    if (replicas > 1) need.buckets = kBuffers * std::min(bucket, parameters) * bytes_of(parameter_type_);
    add_passes(share, need);
    return {need, std::move(share)};
  }

  NeediestDevice divided(const Division& division) const {
    NeediestDevice most;
    for (DeviceShare& share : division.shares({layers_.model, layers_, *job_.mesh})) {
      const MemoryNeed need = need_of(share);
      if (need.total() > most.need.total()) most = {need, std::move(share)};
    }
    return most;
  }

  ActivationSettings settings_of(const DeviceShare& share) const {
    ActivationSettings settings = activation_settings(layers_, share.examples);
    settings.row_parts = share.row_parts;
    settings.expert_row_parts = share.expert_row_parts;
    settings.key_parts = share.key_parts;
    settings.key_rounds = share.key_rounds;
    settings.exchanges_heads = share.exchanges_heads;
    return settings;
  }

 private:
  void reserve(MemoryNeed& need) const {
    const DeviceSettings& devices = job_.scenario.devices;
    const double share = devices.reserved_share * static_cast<double>(need.total());
    need.reserved = devices.reserved_bytes + static_cast<std::int64_t>(std::llround(share));
  }

  static std::int64_t bytes_of(DType dtype) { return static_cast<std::int64_t>(size_of(dtype)); }

  // Moments are kept in f32 or a more precise type, unless the workload names one. If there are moments, parameters of
  // two bytes have a copy in f32. Parameters of more bytes have a copy of two bytes if the layers compute in such a
  // type.
  std::int64_t optimizer_bytes(DType parameter_type) const {
    const std::int64_t precise = std::max<std::int64_t>(4, bytes_of(parameter_type));
    std::int64_t bytes = layers_.moments.bytes(layers_.optimizer, precise);
    if (bytes_of(parameter_type) == 2 && bytes > 0) bytes += precise;
    return bytes + copy_bytes(parameter_type);
  }

  // Returns the bytes of a parameter's copy of the type that kernels read.
  std::int64_t copy_bytes(DType parameter_type) const {
    return bytes_of(parameter_type) > 2 && bytes_of(storage_) == 2 ? bytes_of(storage_) : 0;
  }

  // Returns what of the optimizer's state is not on the host.
  std::int64_t kept_here(std::int64_t state_bytes) const {
    const double on_host = layers_.offload.optimizer * static_cast<double>(state_bytes);
    return state_bytes - static_cast<std::int64_t>(std::llround(on_host));
  }

  void add_parameters(MemoryNeed& need, std::int64_t count, DType type, bool with_state, bool with_copy = true) const {
    need.parameters += count * bytes_of(type);
    need.gradients += count * bytes_of(type);
    if (!with_state) return;
    need.optimizer += kept_here(count * (optimizer_bytes(type) - copy_bytes(type)));
    if (with_copy) need.optimizer += count * copy_bytes(type);
  }

  // With a distributed optimizer, the weights that kernels read and the gradients are whole, and all else is divided.
  void add_divided_state(MemoryNeed& need, const DeviceShare::Parameters& parameters) const {
    const std::int64_t of_all = 2 * bytes_of(parameter_type_) + optimizer_bytes(parameter_type_);
    const std::int64_t whole = bytes_of(storage_) + bytes_of(parameter_type_);
    need.parameters += parameters.count * bytes_of(storage_);
    need.gradients += parameters.count * bytes_of(parameter_type_);
    need.optimizer += kept_here(rounded_up(parameters.count, parameters.state_parts) * (of_all - whole));
  }

  // Adds what the passes hold at the moment at which that is most.
  void add_passes(const DeviceShare& share, MemoryNeed& need) const {
    if (share.stages.empty()) return;
    const ActivationSettings settings = settings_of(share);
    const StepMoment peak = StepMemory(share, settings).peak();
    need.activations = peak.activations;
    need.workspace += peak.workspace;
    need.moment = moment_text(peak, share);
    for (const DeviceShare::Stage& stage : share.stages) {
      need.cached = std::max(need.cached, cached_logits(stage.layers, settings));
    }
  }

  MemoryNeed need_of(const DeviceShare& share) const {
    MemoryNeed need{
        .buckets = share.reduced_together * bytes_of(parameter_type_) + share.sent_together * bytes_of(storage_),
        .input = kBuffers * share.input * bytes_of(storage_)};
    std::int64_t frozen = 0;
    for (const DeviceShare::Stage& stage : share.stages) {
      for (const Layer& layer : stage.layers) frozen += layer.frozen_parameters();
    }
    need.parameters += rounded_up(frozen, share.parameters.front().parts) * bytes_of(storage_);
    bool has_pieces = false;  // whose copies for kernels are whole, in buckets
    for (const DeviceShare::Parameters& parameters : share.parameters) {
      has_pieces = has_pieces || parameters.parts > 1;
      if (share.divides_state) {
        add_divided_state(need, parameters);
      } else {
        add_parameters(need, rounded_up(parameters.count, parameters.parts), parameter_type_, true, !has_pieces);
      }
    }
    if (layers_.stack.accumulation == Accumulation::in_products && !has_pieces) {
      for (const DeviceShare::Stage& stage : share.stages) {
        need.workspace = std::max(need.workspace, unused_gradients(stage.layers) * bytes_of(storage_));
      }
    }
    add_passes(share, need);
    return need;
  }

  const Job& job_;
  const LayersSettings& layers_;
  DType storage_;         // of activations
  DType parameter_type_;  // of parameters and gradients
};

// Returns the memory of the smallest device that trains; 0 if it is not known. Devices on one GPU share its memory.
std::int64_t available_bytes(const Job& job) {
  const Scenario& scenario = job.scenario;
  if (!scenario.topology) return 0;
  const NodeKind kind = scenario.devices.type == DeviceType::gpu ? NodeKind::gpu : NodeKind::cpu;
  std::int64_t least = 0;
  const int machines = scenario.topology->worker_count();
  std::set<const Topology*> kinds;
  for (int worker = 0; worker < std::min(job.workers, machines); ++worker) {
    const bool is_of_kind = worker < scenario.topology->machine_count();
    if (is_of_kind && !kinds.insert(&scenario.topology->machine(worker)).second) continue;
    const std::vector<NodeIndex> nodes = scenario.topology->nodes_of(worker, kind);
    if (nodes.empty()) continue;
    const auto sharing = rounded_up(scenario.devices.per_worker, static_cast<std::int64_t>(nodes.size()));
    for (const NodeIndex node : nodes) {
      const auto& model = scenario.topology->node(node).device;
      const auto bytes = model ? static_cast<std::int64_t>(model->memory_bytes.value) / sharing : 0;
      if (bytes > 0 && (least == 0 || bytes < least)) least = bytes;
    }
  }
  return least;
}

}  // namespace

bool is_memory_estimated(const Job& job) {
  return job.layers != nullptr && !parallel_problem(job.scenario);
}

std::optional<MemoryNeed> memory_need(const Job& job) {
  if (!is_memory_estimated(job)) return std::nullopt;
  const MemoryModel model(job);
  MemoryNeed need = model.neediest().need;
  if (auto evaluation = model.evaluation(); evaluation && evaluation->total() > need.total()) need = *evaluation;
  need.available = available_bytes(job);
  return need;
}

std::optional<MemoryOfStep> memory_of_step(const Job& job) {
  if (!is_memory_estimated(job)) return std::nullopt;
  const MemoryModel model(job);
  NeediestDevice device = model.neediest();
  if (device.share.stages.empty()) return std::nullopt;
  device.need.available = available_bytes(job);
  std::vector<StepMoment> moments = StepMemory(device.share, model.settings_of(device.share)).moments();
  return MemoryOfStep{device.need, std::move(device.share), std::move(moments)};
}

std::int64_t largest_workspace(const MemoryOfStep& step) {
  std::int64_t most = 0;
  for (const StepMoment& moment : step.moments) most = std::max(most, moment.workspace);
  return most;
}

void check_memory(const Job& job, const std::optional<MemoryNeed>& need, const std::string& advice) {
  if (!need || need->fits()) return;
  const std::string more = advice.empty() ? "" : "; " + advice;
  throw MemoryError(job.scenario.problem_at("workload", "a device " + memory_text(*need) + more), *need);
}

}  // namespace tandem
