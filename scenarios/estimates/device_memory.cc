#include "scenarios/estimates/device_memory.h"

#include <algorithm>
#include <set>

#include "scenarios/estimates/activations.h"
#include "scenarios/job/parallel_settings.h"
#include "strategies/parallel/division.h"
#include "strategies/parallel/layout/gradient_buckets.h"

namespace tandem {
namespace {

constexpr std::int64_t kBuffers = 2;  // of data in transit: one is filled while the other is sent or used

std::int64_t rounded_up(std::int64_t total, std::int64_t parts) {
  return (total + parts - 1) / parts;
}

// Computes the memory of a job's devices.
class MemoryModel {
 public:
  explicit MemoryModel(const Job& job)
      : job_(job), layers_(*job.layers), storage_(layers_.storage()), parameter_type_(layers_.parameter_type()) {}

  MemoryNeed replicated() const {
    const std::int64_t replicas = job_.devices;
    const std::int64_t examples = rounded_up(job_.scenario.workload.batch, replicas);
    MemoryNeed need = passes_over(examples);
    const std::int64_t parameters = layers_.model.parameters();
    add_parameters(need, parameters, parameter_type_, job_.servers == 0);
    const std::int64_t bucket = largest_bucket(layers_.model.layers, layers_.bucket_bytes, bytes_of(parameter_type_));
    if (replicas > 1) need.buckets = kBuffers * std::min(bucket, parameters) * bytes_of(parameter_type_);
    return need;
  }

  // Returns the need of the device that needs most.
  MemoryNeed divided(const Division& division) const {
    MemoryNeed most;
    for (const DeviceShare& share : division.shares({layers_.model, layers_, *job_.mesh})) {
      const MemoryNeed need = need_of(share);
      if (need.total() > most.total()) most = need;
    }
    return most;
  }

 private:
  static std::int64_t bytes_of(DType dtype) { return static_cast<std::int64_t>(size_of(dtype)); }

  // Moments are kept in f32 or a more precise type. If there are moments, parameters of two bytes have a copy in f32.
  // Parameters of more bytes have a copy of two bytes if the layers compute in such a type.
  std::int64_t optimizer_bytes(DType parameter_type) const {
    const std::int64_t precise = std::max<std::int64_t>(4, bytes_of(parameter_type));
    std::int64_t bytes = layers_.optimizer == Optimizer::sgd        ? 0
                         : layers_.optimizer == Optimizer::momentum ? precise
                                                                    : 2 * precise;
    if (bytes_of(parameter_type) == 2 && bytes > 0) bytes += precise;
    if (bytes_of(parameter_type) > 2 && bytes_of(storage_) == 2) bytes += bytes_of(storage_);
    return bytes;
  }

  void add_parameters(MemoryNeed& need, std::int64_t count, DType type, bool with_state) const {
    need.parameters += count * bytes_of(type);
    need.gradients += count * bytes_of(type);
    if (with_state) need.optimizer += count * optimizer_bytes(type);
  }

  // With a distributed optimizer, the weights that kernels read and the gradients are whole, and all else is divided.
  void add_divided_state(MemoryNeed& need, const DeviceShare::Parameters& parameters) const {
    const std::int64_t of_all = 2 * bytes_of(parameter_type_) + optimizer_bytes(parameter_type_);
    const std::int64_t whole = bytes_of(storage_) + bytes_of(parameter_type_);
    need.parameters += parameters.count * bytes_of(storage_);
    need.gradients += parameters.count * bytes_of(parameter_type_);
    need.optimizer += rounded_up(parameters.count, parameters.state_parts) * (of_all - whole);
  }

  // Returns the need of the whole model for some examples, in as many passes as gradients are accumulated over.
  MemoryNeed passes_over(std::int64_t examples) const {
    const ActivationSettings settings =
        activation_settings(layers_, rounded_up(examples, layers_.gradient_accumulation_steps));
    const std::vector<Layer>& layers = layers_.model.layers;
    MemoryNeed need;
    need.activations = activation_bytes(layers, settings) + recomputed_bytes(layers, settings);
    need.input = kBuffers * examples * layers_.model.input_elements * bytes_of(storage_);
    need.workspace = 2 * largest_layer_bytes(layers, settings);
    return need;
  }

  MemoryNeed need_of(const DeviceShare& share) const {
    ActivationSettings settings = activation_settings(layers_, share.examples);
    settings.row_parts = share.row_parts;
    settings.key_parts = share.key_parts;
    MemoryNeed need{
        .buckets = share.reduced_together * bytes_of(parameter_type_) + share.sent_together * bytes_of(storage_),
        .input = kBuffers * share.input * bytes_of(storage_)};
    std::int64_t recomputed = 0;
    for (const DeviceShare::Stage& stage : share.stages) {
      need.activations += stage.live * activation_bytes(stage.layers, settings);
      recomputed = std::max(recomputed, recomputed_bytes(stage.layers, settings));
      need.workspace = std::max(need.workspace, 2 * largest_layer_bytes(stage.layers, settings));
    }
    need.activations += recomputed;
    for (const DeviceShare::Parameters& parameters : share.parameters) {
      if (share.divides_state) {
        add_divided_state(need, parameters);
      } else {
        add_parameters(need, rounded_up(parameters.count, parameters.parts), parameter_type_, true);
      }
    }
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

std::optional<MemoryNeed> memory_need(const Job& job) {
  if (job.layers == nullptr || parallel_problem(job.scenario)) return std::nullopt;
  const MemoryModel model(job);
  MemoryNeed need = job.mesh ? model.divided(*job.strategy.division->how) : model.replicated();
  need.available = available_bytes(job);
  return need;
}

void check_memory(const Job& job, const std::optional<MemoryNeed>& need, const std::string& advice) {
  if (!need || need->fits()) return;
  const std::string more = advice.empty() ? "" : "; " + advice;
  throw MemoryError(job.scenario.problem_at("workload", "a device " + memory_text(*need) + more), *need);
}

}  // namespace tandem
