#include "scenarios/device_memory.h"

#include <algorithm>
#include <set>

#include "scenarios/activations.h"
#include "scenarios/job.h"
#include "scenarios/layer_division.h"
#include "scenarios/parallel_settings.h"
#include "strategies/parallel/linear.h"
#include "strategies/parallel/pipeline_schedule.h"
#include "strategies/parallel/trainer.h"
#include "strategies/strategies.h"

namespace tandem {
namespace {

using LayerTables = ModelDivision::LayerTables;

constexpr std::int64_t kBuffers = 2;  // of data in transit: one is filled while the other is sent or used

std::int64_t rounded_up(std::int64_t total, std::int64_t parts) {
  return (total + parts - 1) / parts;
}

// Computes the memory of a job's devices.
class MemoryModel {
 public:
  MemoryModel(const Scenario& scenario, const LayersSettings& layers)
      : scenario_(scenario),
        layers_(layers),
        storage_(layers.dtype == DType::tf32 ? DType::f32 : layers.dtype),
        parameter_type_(layers.parameter_dtype.value_or(storage_)) {}

  MemoryNeed replicated() const {
    const std::int64_t replicas = training_devices(scenario_);
    const std::int64_t examples = rounded_up(scenario_.workload.batch, replicas);
    MemoryNeed need = passes_over(examples);
    const std::int64_t parameters = layers_.model.parameters();
    add_parameters(need, parameters, parameter_type_, parameter_servers(scenario_) == 0);
    const std::int64_t bucket = largest_bucket(layers_.model.layers, bytes_of(parameter_type_));
    if (replicas > 1) need.buckets = kBuffers * std::min(bucket, parameters) * bytes_of(parameter_type_);
    return need;
  }

  // Two units of parameters and two of gradients exist as a whole at a time: see ShardedParameters.
  MemoryNeed gathered(const ParallelOptions& options) const {
    MemoryNeed need = passes_over(rounded_up(scenario_.workload.batch, options.data));
    add_parameters(need, rounded_up(layers_.model.parameters(), options.data), storage_, true);
    need.buckets = 2 * kBuffers * largest_bucket(layers_.model.layers, bytes_of(storage_)) * bytes_of(storage_);
    return need;
  }

  // Returns the need of the device of the pipeline that needs most.
  MemoryNeed divided(const ParallelOptions& options) const {
    MemoryNeed most;
    for (int place = 0; place < options.pipeline; ++place) {
      const MemoryNeed need = on_pipeline_device(options, place);
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
  void add_divided_parameters(MemoryNeed& need, std::int64_t count, std::int64_t parts) const {
    const std::int64_t of_all = 2 * bytes_of(parameter_type_) + optimizer_bytes(parameter_type_);
    const std::int64_t whole = bytes_of(storage_) + bytes_of(parameter_type_);
    need.parameters += count * bytes_of(storage_);
    need.gradients += count * bytes_of(parameter_type_);
    need.optimizer += rounded_up(count, parts) * (of_all - whole);
  }

  // Returns the need of the whole model for some examples, in as many passes as gradients are accumulated over.
  MemoryNeed passes_over(std::int64_t examples) const {
    const ActivationSettings settings = for_examples(rounded_up(examples, layers_.gradient_accumulation_steps));
    const std::vector<Layer>& layers = layers_.model.layers;
    MemoryNeed need;
    need.activations = activation_bytes(layers, settings) + recomputed_bytes(layers, settings);
    need.input = kBuffers * examples * layers_.model.input_elements * bytes_of(storage_);
    need.workspace = 2 * largest_layer_bytes(layers, settings);
    return need;
  }

  ActivationSettings for_examples(std::int64_t examples) const {
    return {.examples = examples,
            .dtype = storage_,
            .checkpointing = layers_.activation_checkpointing,
            .keeps_scores = layers_.stack.attention != AttentionKernels::flash};
  }

  // Returns the elements of the largest group of layers, if groups are closed once they have bucket_bytes.
  std::int64_t largest_bucket(const std::vector<Layer>& layers, std::int64_t element_bytes) const {
    std::int64_t most = 0, bucket = 0;
    for (const Layer& layer : layers) {
      if (bucket * element_bytes >= layers_.bucket_bytes) bucket = 0;
      bucket += layer.parameters();
      most = std::max(most, bucket);
    }
    return most;
  }

  MemoryNeed on_pipeline_device(const ParallelOptions& options, int place) const {
    const std::int64_t examples = options.batch / options.data / options.micro_batches;
    ActivationSettings settings = for_examples(examples);
    const LayerDivision division = layer_division(layers_, options);
    if (division.divides_rows) settings.row_parts = options.tensor;
    settings.key_parts = options.context;
    const std::vector<std::size_t> first = first_layers_of_stages(layers_.model, options.stages());
    const std::vector<PipelineAction> actions =
        interleaved_one_forward_one_backward(place, options.pipeline, options.virtual_stages, options.micro_batches);
    MemoryNeed need;
    std::int64_t parameters = 0, of_experts = 0, recomputed = 0, bucket = 0;
    for (int chunk = 0; chunk < options.virtual_stages; ++chunk) {
      const auto stage = static_cast<std::size_t>(chunk * options.pipeline + place);
      const std::vector<Layer> parts = parts_between(first[stage], first[stage + 1], division);
      for (const Layer& part : parts) parameters += part.parameters();
      of_experts += expert_parameters(first[stage], first[stage + 1], division);
      if (static_cast<int>(stage) + 1 == options.stages() && stage > 0) parameters += tied_parameters(options.tensor);
      need.activations += live_micro_batches(actions, chunk) * activation_bytes(parts, settings);
      recomputed = std::max(recomputed, recomputed_bytes(parts, settings));
      bucket = std::max(bucket, largest_bucket(parts, bytes_of(parameter_type_)));
      need.workspace = std::max(need.workspace, 2 * largest_layer_bytes(parts, settings));
      for (const std::size_t boundary : {first[stage], first[stage + 1]}) {
        need.buckets += boundary_bytes(boundary, settings) / options.context;
      }
    }
    need.activations += recomputed;
    const std::int64_t replicas = std::int64_t{options.data} * options.context;
    if (options.distributed_optimizer) {
      add_divided_parameters(need, parameters - of_experts, replicas);
      add_divided_parameters(need, of_experts, replicas / options.expert);
    } else {
      add_parameters(need, parameters, parameter_type_, true);
    }
    if (replicas > 1) need.buckets += kBuffers * bucket * bytes_of(parameter_type_);
    if (place == 0) {
      const std::int64_t tokens = rounded_up(layers_.model.input_elements, options.context);
      need.input = kBuffers * options.batch / options.data * tokens * bytes_of(storage_);
    }
    return need;
  }

  // If layers do not divide evenly, tensor-parallel device 0 has the largest part.
  std::vector<Layer> parts_between(std::size_t begin, std::size_t end, const LayerDivision& division) const {
    std::vector<Layer> parts;
    for (std::size_t i = begin; i < end; ++i) parts.push_back(divided_layer(layers_.model.layers[i], division, 0));
    return parts;
  }

  // Returns the parameters of layers whose experts are divided.
  std::int64_t expert_parameters(std::size_t begin, std::size_t end, const LayerDivision& division) const {
    std::int64_t parameters = 0;
    for (std::size_t i = begin; i < end && division.expert > 1; ++i) {
      const Layer& layer = layers_.model.layers[i];
      if (has_experts(layer)) parameters += divided_layer(layer, division, 0).parameters();
    }
    return parameters;
  }

  // Returns the parameters in the last stage's copy of an embedding that shares its weights with a layer there.
  std::int64_t tied_parameters(int tensor) const {
    std::int64_t most = 0;
    for (const Layer& layer : layers_.model.layers) {
      if (!layer.shared_weights) continue;
      const Layer part = layer_part(layer, tensor, 0);
      most = std::max(most, part.gemm->depth * part.gemm->columns);
    }
    return most;
  }

  // Returns the bytes of the activations that go from the stage ending before `layer` to the next one, and of their
  // gradients.
  std::int64_t boundary_bytes(std::size_t layer, const ActivationSettings& settings) const {
    const std::vector<Layer>& layers = layers_.model.layers;
    if (layer == 0 || layer == layers.size()) return 0;
    return 2 * settings.examples * layers[layer - 1].output_elements() / settings.row_parts * bytes_of(storage_);
  }

  const Scenario& scenario_;
  const LayersSettings& layers_;
  DType storage_;         // of activations
  DType parameter_type_;  // of parameters and gradients
};

// Returns the memory of the smallest device that trains; 0 if it is not known. Devices on one GPU share its memory.
std::int64_t available_bytes(const Scenario& scenario) {
  if (!scenario.topology) return 0;
  const NodeKind kind = scenario.devices.type == DeviceType::gpu ? NodeKind::gpu : NodeKind::cpu;
  std::int64_t least = 0;
  const int machines = scenario.topology->worker_count();
  std::set<const Topology*> kinds;
  for (int worker = 0; worker < std::min(training_workers(scenario), machines); ++worker) {
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

std::optional<MemoryNeed> memory_need(const Scenario& scenario) {
  const auto* layers = std::get_if<LayersSettings>(&scenario.workload.kind);
  if (layers == nullptr || parallel_problem(scenario)) return std::nullopt;
  const MemoryModel model(scenario, *layers);
  const auto& division = strategy_info(scenario.strategy.name).division;
  const LayerTables tables = division ? division->layer_tables : LayerTables::none;
  MemoryNeed need = tables == LayerTables::gathered  ? model.gathered(parallel_options(scenario))
                    : tables == LayerTables::divided ? model.divided(parallel_options(scenario))
                                                     : model.replicated();
  need.available = available_bytes(scenario);
  return need;
}

void check_memory(const Scenario& scenario, const std::optional<MemoryNeed>& need) {
  if (!need || need->fits()) return;
  throw MemoryError(scenario.problem_at("workload", "a device " + memory_text(*need)), *need);
}

}  // namespace tandem
