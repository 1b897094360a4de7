#include "scenarios/workloads/layers.h"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/layer_division.h"
#include "scenarios/workloads/batch_share.h"
#include "strategies/base/replica_context.h"
#include "strategies/parallel/linear.h"

namespace tandem {
namespace {

constexpr double kLearningRate = 1e-3;

}  // namespace

LayersWorkload::LayersWorkload(const LayersSettings& settings, int global_batch, Strategy& strategy)
    : settings_(settings),
      global_batch_(global_batch),
      strategy_(strategy),
      storage_(settings.dtype == DType::tf32 ? DType::f32 : settings.dtype),
      parameter_type_(settings.parameter_dtype.value_or(storage_)) {}

void LayersWorkload::prepare() {
  const Scope scope = strategy_.scope();
  divide_into_buckets();
  create_variables();
  const std::vector<Device*>& devices = strategy_.extended().worker_devices();
  const std::vector<std::int64_t> batches = batch_share(global_batch_, strategy_).local;
  replicas_.resize(devices.size());
  for (std::size_t i = 0; i < devices.size(); ++i) {
    replicas_[i].passes = passes_of(batches[i]);
    allocate(replicas_[i], *devices[i], batches[i]);
  }
}

void LayersWorkload::allocate(Replica& replica, Device& device, std::int64_t batch) const {
  replica.batch = batch;
  const ScratchSizes sizes = scratch_sizes(settings_.model.layers, replica.passes.front().batch);
  Stream& stream = device.compute_stream();
  const auto filled = [&](std::int64_t count, DType dtype) {
    Tensor tensor = device.allocate(dtype, {count});
    stream.launch(op::fill(tensor, 0));
    return tensor;
  };
  replica.scratch.left = filled(sizes.left, storage_);
  replica.scratch.right = filled(sizes.right, storage_);
  replica.scratch.result = filled(sizes.result, storage_);
  replica.gradients = filled(buckets_.empty() ? 1 : buckets_.back().end(), parameter_type_);
  Device& host = strategy_.extended().worker().cpu();
  replica.host_input = host.allocate(storage_, {batch * settings_.model.input_elements});
  host.compute_stream().launch(op::fill(replica.host_input, 0));
  host.compute_stream().synchronize();
  for (int slot = 0; slot < 2; ++slot) replica.input.push_back(filled(replica.host_input.element_count(), storage_));
  replica.input_ready.resize(2);
  replica.input_used.resize(2);
  fetch_input(replica, device, 0);
}

// Divides the gradients, from those of the last layer to those of the first, into buckets of bucket_bytes or more; the
// last bucket may be smaller. Where each tensor is a variable, a bucket is a tensor.
void LayersWorkload::divide_into_buckets() {
  const auto element_bytes = static_cast<std::int64_t>(size_of(parameter_type_));
  Bucket bucket;
  const auto close = [&] {
    buckets_.push_back(bucket);
    bucket = {.first = bucket.end()};
  };
  for (std::size_t index = settings_.model.layers.size(); index-- > 0;) {
    const Layer& layer = settings_.model.layers[index];
    for (auto tensor = layer.tensors.rbegin(); tensor != layer.tensors.rend(); ++tensor) {
      bucket.count += *tensor;
      bucket.first_layer = index;
      if (settings_.variables_are_tensors) close();
    }
    if (bucket.count > 0 && bucket.first_layer == index && bucket.count * element_bytes >= settings_.bucket_bytes) {
      close();
    }
  }
  if (bucket.count > 0) close();
}

// If tensors are variables, creates them in the order of the model, because parameter servers take them in turn.
void LayersWorkload::create_variables() {
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    const bool is_tensor = settings_.variables_are_tensors;
    Bucket& bucket = buckets_[is_tensor ? buckets_.size() - 1 - i : i];
    bucket.parameters = strategy_.create_variable({.name = fmt::format("{}{}", is_tensor ? "tensor" : "bucket", i),
                                                   .dtype = parameter_type_,
                                                   .shape = {bucket.count},
                                                   .initial_value = {},
                                                   .aggregation = VariableAggregation::sum});
  }
}

void LayersWorkload::run_step(int step) {
  strategy_.run([&](const Value::Parts&) {
    replica_step(replicas_[static_cast<std::size_t>(get_replica_context()->local_replica_id())], step);
    return Value();
  });
}

void LayersWorkload::replica_step(Replica& replica, int step) {
  Device& device = get_replica_context()->device();
  device.compute_stream().wait(replica.input_ready[input_slot(step)]);
  fetch_input(replica, device, step + 1);
  for (const Pass& pass : replica.passes) {
    forward(replica, pass, device);
    if (pass.is_last) replica.input_used[input_slot(step)] = device.compute_stream().record();
    backward(replica, pass, device);
  }
}

// Brings the batch of `step` to the device while the step before it computes.
void LayersWorkload::fetch_input(Replica& replica, Device& device, int step) const {
  Stream& stream = device.stream(kInputStream);
  stream.wait(replica.input_used[input_slot(step)]);
  stream.copy(replica.input[input_slot(step)], replica.host_input, Category::input);
  replica.input_ready[input_slot(step)] = stream.record();
}

std::vector<LayersWorkload::Pass> LayersWorkload::passes_of(std::int64_t batch) {
  const int count = settings_.gradient_accumulation_steps;
  std::vector<Pass> passes;
  for (int i = 0; i < count; ++i) {
    const std::int64_t part = part_of(batch, count, i).count;
    passes.push_back({.batch = part, .kernels = &kernels_for(part), .is_first = i == 0, .is_last = i + 1 == count});
  }
  return passes;
}

const LayersWorkload::StepKernels& LayersWorkload::kernels_for(std::int64_t batch) {
  const auto [entry, is_new] = kernels_.try_emplace(batch);
  if (!is_new) return entry->second;
  const std::vector<Layer>& layers = settings_.model.layers;
  const auto first_product =
      std::find_if(layers.begin(), layers.end(), [](const Layer& layer) { return layer.gemm.has_value(); });
  const LayerKernels kernels(settings_.stack, settings_.dtype, batch, settings_.model.depends_on_stack());
  for (auto layer = layers.begin(); layer != layers.end(); ++layer) {
    entry->second.forward.push_back(kernels.forward(*layer));
    entry->second.backward.push_back(kernels.backward(*layer, layer != first_product));
  }
  return entry->second;
}

void LayersWorkload::forward(const Replica& replica, const Pass& pass, Device& device) const {
  auto next = buckets_.rbegin();
  for (std::size_t i = 0; i < settings_.model.layers.size(); ++i) {
    const Layer& layer = settings_.model.layers[i];
    // The preceding layers hide the time to bring parameters from other devices.
    while (pass.is_first && next != buckets_.rend() && next->first_layer == i) (next++)->parameters->value();
    const LayerOps ops(device.compute_stream(), layer, pass.batch, settings_.dtype);
    for (const LayerKernel& kernel : pass.kernels->forward[i]) ops.launch(kernel, replica.scratch);
  }
}

void LayersWorkload::backward(const Replica& replica, const Pass& pass, Device& device) {
  std::size_t begun = 0;
  const auto begin_next = [&] {
    const Bucket& bucket = buckets_[begun++];
    updates_.begin({bucket.parameters}, {replica.gradients.flat_slice(bucket.first, bucket.count)});
  };
  std::int64_t known = 0;
  for (std::size_t i = settings_.model.layers.size(); i-- > 0;) {
    layer_backward(replica, pass, i, known, device.compute_stream());
    known += settings_.model.layers[i].parameters();
    if (!pass.is_last) continue;
    while (settings_.overlap && begun < buckets_.size() && buckets_[begun].end() <= known) begin_next();
  }
  if (!pass.is_last) return;
  while (begun < buckets_.size()) begin_next();
  updates_.apply([this](Variable& variable, const Tensor& gradient) { update(variable, gradient); });
}

void LayersWorkload::layer_backward(const Replica& replica, const Pass& pass, std::size_t index,
                                    std::int64_t first_gradient, Stream& stream) const {
  const std::vector<Layer>& layers = settings_.model.layers;
  const auto block = settings_.activation_checkpointing ? block_ending_at(layers, index) : std::nullopt;
  for (std::size_t i = block.value_or(index + 1); i <= index; ++i) {
    const LayerOps again(stream, layers[i], pass.batch, settings_.dtype);
    for (const LayerKernel& kernel : pass.kernels->forward[i]) again.launch(kernel, replica.scratch);
  }
  const Layer& layer = layers[index];
  const LayerOps ops(stream, layer, pass.batch, settings_.dtype);
  const bool is_in_place = layer.has_weights() && parameter_type_ == storage_;  // else converted afterwards
  const Tensor of_weights = is_in_place ? replica.gradients.flat_slice(first_gradient, layer.parameters()) : Tensor();
  for (const LayerKernel& kernel : pass.kernels->backward[index]) ops.launch(kernel, replica.scratch, of_weights);
  if (pass.is_first || layer.parameters() == 0) return;
  const Tensor mine = replica.gradients.flat_slice(first_gradient, layer.parameters());
  launch_memory(stream, accumulation(layer.parameters(), parameter_type_), mine, mine);
}

void LayersWorkload::update(Variable& variable, const Tensor& gradient) const {
  Op op = op::scale_add(variable.handle(), gradient, -kLearningRate, 1);
  op.name = "sgd";
  op.category = Category::update;
  Stream& stream = variable.handle().device().compute_stream();
  stream.launch(std::move(op));
  launch_memory(stream, optimizer_state(settings_.optimizer, gradient.element_count(), storage_, parameter_type_),
                gradient, gradient, Category::update);
}

}  // namespace tandem
