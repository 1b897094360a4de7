#include "scenarios/workloads/sharded_layers.h"

#include <algorithm>

#include "scenarios/layer_division.h"
#include "scenarios/workloads/parallel_mlp.h"
#include "strategies/multi_worker_mirrored.h"

namespace tandem {
namespace {

constexpr SgdSettings kSgd{.learning_rate = 1e-3, .momentum = 0};

}  // namespace

ShardedLayersWorkload::ShardedLayersWorkload(const LayersSettings& settings, Worker& worker,
                                             const ParallelOptions& options)
    : settings_(settings),
      worker_(worker),
      options_(options),
      storage_(settings.dtype == DType::tf32 ? DType::f32 : settings.dtype) {}

void ShardedLayersWorkload::prepare() {
  divide_into_units();
  const std::vector<Layer>& layers = settings_.model.layers;
  first_product_ = static_cast<std::size_t>(
      std::find_if(layers.begin(), layers.end(), [](const Layer& layer) { return layer.gemm.has_value(); }) -
      layers.begin());
  mesh_ = std::make_unique<DeviceMesh>(worker_, devices_in_sync(worker_),
                                       std::vector<MeshAxis>{{.name = "data", .size = options_.data}});
  group_ = std::make_unique<GroupCollectives>(worker_, mesh_->communicator(0, "data"));
  for (std::size_t i = 0; i < mesh_->local_devices().size(); ++i) replicas_.push_back(make_replica(i));
}

// A unit is closed once it holds bucket_bytes; the layers without parameters after it belong to it as well.
void ShardedLayersWorkload::divide_into_units() {
  const auto element_bytes = static_cast<std::int64_t>(size_of(storage_));
  units_.push_back({});
  for (const Layer& layer : settings_.model.layers) {
    if (layer.parameters() > 0 && units_.back().count * element_bytes >= settings_.bucket_bytes) units_.push_back({});
    places_.push_back({.unit = static_cast<int>(units_.size()) - 1, .first = units_.back().count});
    units_.back().count += layer.parameters();
  }
  units_.front().count = std::max<std::int64_t>(1, units_.front().count);
}

ShardedLayersWorkload::Replica ShardedLayersWorkload::make_replica(std::size_t index) {
  Device& device = *mesh_->local_devices()[index];
  const int rank = mesh_->local_ranks()[index];
  Replica replica{.device = &device, .batch = part_of(options_.batch, options_.data, rank).count};
  replica.parameters =
      std::make_unique<ShardedParameters>(device, worker_.cpu(), *group_, rank, units_, storage_, kSgd);
  const auto filled = [&](Device& on, std::int64_t count) {
    Tensor tensor = on.allocate(storage_, {count});
    on.compute_stream().launch(op::fill(tensor, 0));
    return tensor;
  };
  const ScratchSizes sizes =
      scratch_sizes(settings_.model.layers, part_of(replica.batch, settings_.gradient_accumulation_steps, 0).count);
  replica.scratch = {
      .left = filled(device, sizes.left), .right = filled(device, sizes.right), .result = filled(device, sizes.result)};
  replica.host_input = filled(worker_.cpu(), replica.batch * settings_.model.input_elements);
  worker_.cpu().compute_stream().synchronize();
  for (Tensor& input : replica.input) input = filled(device, replica.host_input.element_count());
  fetch_input(replica, 0);
  return replica;
}

// Brings the batch of `step` to the device while the step before it computes.
void ShardedLayersWorkload::fetch_input(Replica& replica, int step) const {
  Stream& stream = replica.device->stream(kInputStream);
  stream.wait(replica.input_used[input_slot(step)]);
  stream.copy(replica.input[input_slot(step)], replica.host_input, Category::input);
  replica.input_ready[input_slot(step)] = stream.record();
}

void ShardedLayersWorkload::run_step(int step) {
  worker_.run_concurrently(static_cast<int>(replicas_.size()),
                           [&](int i) { this->step(replicas_[static_cast<std::size_t>(i)], step); });
}

void ShardedLayersWorkload::step(Replica& replica, int step) const {
  Stream& stream = replica.device->compute_stream();
  stream.wait(replica.input_ready[input_slot(step)]);
  fetch_input(replica, step + 1);
  const std::int64_t mine = settings_.model.parameters() / options_.data;
  for (int pass = 0; pass < settings_.gradient_accumulation_steps; ++pass) {
    const std::int64_t batch = part_of(replica.batch, settings_.gradient_accumulation_steps, pass).count;
    forward(replica, batch);
    if (pass + 1 == settings_.gradient_accumulation_steps) replica.input_used[input_slot(step)] = stream.record();
    backward(replica, batch);
    if (pass == 0) continue;
    launch_memory(stream, accumulation(mine, storage_), replica.scratch.result, replica.scratch.left);
  }
  replica.parameters->update();
  launch_memory(stream, optimizer_state(settings_.optimizer, mine, storage_, storage_), replica.scratch.result,
                replica.scratch.left, Category::update);
}

Scratch ShardedLayersWorkload::with_weights(const Replica& replica, std::size_t index, const Tensor& unit) const {
  const Layer& layer = settings_.model.layers[index];
  Scratch scratch = replica.scratch;
  if (layer.has_weights()) scratch.right = unit.flat_slice(places_[index].first, layer.parameters());
  return scratch;
}

void ShardedLayersWorkload::forward(const Replica& replica, std::int64_t batch) const {
  Stream& stream = replica.device->compute_stream();
  ShardedParameters& parameters = *replica.parameters;
  const LayerKernels kernels = kernels_for(batch);
  Tensor unit;
  for (std::size_t i = 0; i < settings_.model.layers.size(); ++i) {
    const Layer& layer = settings_.model.layers[i];
    const int number = places_[i].unit;
    if (i == 0 || number != places_[i - 1].unit) {
      if (i > 0) parameters.release(number - 1);
      unit = parameters.acquire(number);
      if (settings_.overlap && number + 1 < parameters.units()) parameters.prefetch(number + 1);
    }
    const Scratch scratch = with_weights(replica, i, unit);
    const LayerOps ops(stream, layer, batch, settings_.dtype);
    for (const LayerKernel& kernel : kernels.forward(layer)) ops.launch(kernel, scratch);
  }
  parameters.release(parameters.units() - 1);
}

void ShardedLayersWorkload::backward(const Replica& replica, std::int64_t batch) const {
  ShardedParameters& parameters = *replica.parameters;
  Tensor unit, gradients;
  for (std::size_t i = settings_.model.layers.size(); i-- > 0;) {
    const int number = places_[i].unit;
    if (i + 1 == settings_.model.layers.size() || number != places_[i + 1].unit) {
      unit = parameters.acquire(number);
      if (settings_.overlap && number > 0) parameters.prefetch(number - 1);
      gradients = parameters.gradients(number);
    }
    layer_backward(replica, batch, i, with_weights(replica, i, unit), gradients);
    if (i > 0 && number == places_[i - 1].unit) continue;
    parameters.release(number);
    parameters.reduce_gradients(number);
  }
}

// A block that is computed again works on scratch memory, like everything here but the weights.
void ShardedLayersWorkload::layer_backward(const Replica& replica, std::int64_t batch, std::size_t index,
                                           const Scratch& scratch, const Tensor& gradients) const {
  const std::vector<Layer>& layers = settings_.model.layers;
  Stream& stream = replica.device->compute_stream();
  const LayerKernels kernels = kernels_for(batch);
  const auto block = settings_.activation_checkpointing ? block_ending_at(layers, index) : std::nullopt;
  for (std::size_t i = block.value_or(index + 1); i <= index; ++i) {
    const LayerOps again(stream, layers[i], batch, settings_.dtype);
    for (const LayerKernel& kernel : kernels.forward(layers[i])) again.launch(kernel, replica.scratch);
  }
  const Layer& layer = layers[index];
  const LayerOps ops(stream, layer, batch, settings_.dtype);
  const Tensor of_weights =
      layer.has_weights() ? gradients.flat_slice(places_[index].first, layer.parameters()) : Tensor();
  for (const LayerKernel& kernel : kernels.backward(layer, index != first_product_)) {
    ops.launch(kernel, scratch, of_weights);
  }
}

LayerKernels ShardedLayersWorkload::kernels_for(std::int64_t batch) const {
  return {settings_.stack, settings_.dtype, batch, settings_.model.depends_on_stack()};
}

void ShardedLayersWorkload::finish(Report& report, bool /*carries_values*/) {
  report.metrics["memory_peak_bytes"] = memory_peak_bytes(worker_);
}

}  // namespace tandem
