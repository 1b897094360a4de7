#include "scenarios/workloads/layers.h"

#include <algorithm>

#include "strategies/distributed_dataset.h"

namespace tandem {
namespace {

constexpr double kLearningRate = 1e-3;

std::size_t slot_of(int step) {
  return static_cast<std::size_t>(step % 2);
}

}  // namespace

LayersWorkload::LayersWorkload(const LayersSettings& settings, int global_batch, Strategy& strategy)
    : settings_(settings),
      global_batch_(global_batch),
      strategy_(strategy),
      storage_(settings.dtype == DType::tf32 ? DType::f32 : settings.dtype) {}

LayersWorkload::Product LayersWorkload::product_of(const Layer::Gemm& gemm, std::int64_t batch) const {
  Product product{.m = batch * gemm.count * gemm.rows, .n = gemm.columns, .k = gemm.depth};
  const auto element_bytes = static_cast<double>(size_of(storage_));
  if (gemm.batched) {
    product.extra_bytes = static_cast<double>((batch * gemm.count - 1) * gemm.columns * gemm.depth) * element_bytes;
  }
  if (gemm.input_elements > 0) {
    const std::int64_t saved = batch * gemm.count * (gemm.rows * gemm.depth - gemm.input_elements);
    product.saved_bytes = std::max(0.0, static_cast<double>(saved) * element_bytes);
  }
  return product;
}

void LayersWorkload::prepare() {
  const Scope scope = strategy_.scope();
  parameters_ = strategy_.create_variable({.name = "parameters",
                                           .dtype = storage_,
                                           .shape = {std::max<std::int64_t>(1, settings_.model.parameters())},
                                           .initial_value = {},
                                           .aggregation = VariableAggregation::sum});
  divide_into_buckets();
  const std::vector<Device*>& devices = strategy_.extended().worker_devices();
  const std::vector<std::int64_t> batches = rebatch(global_batch_, static_cast<int>(devices.size()));
  replicas_.resize(devices.size());
  for (std::size_t i = 0; i < devices.size(); ++i) allocate(replicas_[i], *devices[i], batches[i]);
}

void LayersWorkload::allocate(Replica& replica, Device& device, std::int64_t batch) const {
  replica.batch = batch;
  std::int64_t left = 1, right = 1, result = 1;
  for (const Layer& layer : settings_.model.layers) {
    if (layer.gemm) {
      const Product product = product_of(*layer.gemm, batch);
      left = std::max(left, product.m * product.k);
      right = std::max(right, product.k * product.n);
      result = std::max(result, product.m * product.n);
    }
    if (layer.elementwise) {
      left = std::max(left, batch * layer.elementwise->elements);
      result = std::max(result, batch * layer.elementwise->elements);
    }
  }
  Stream& stream = device.compute_stream();
  const auto filled = [&](std::int64_t count) {
    const Tensor tensor = device.allocate(storage_, {count});
    stream.launch(op::fill(tensor, 0));
    return tensor;
  };
  replica.left = filled(left);
  replica.right = filled(right);
  replica.result = filled(result);
  replica.gradients = filled(parameters_->shape()[0]);
  Device& host = strategy_.extended().worker().cpu();
  replica.host_input = host.allocate(storage_, {batch * settings_.model.input_elements});
  host.compute_stream().launch(op::fill(replica.host_input, 0));
  host.compute_stream().synchronize();
  for (int slot = 0; slot < 2; ++slot) replica.input.push_back(filled(replica.host_input.element_count()));
  replica.input_ready.resize(2);
  replica.input_used.resize(2);
  fetch_input(replica, device, 0);
}

// Gradients become known from the last layer to the first; a bucket is full at bucket_bytes, the last one may be less.
void LayersWorkload::divide_into_buckets() {
  const auto element_bytes = static_cast<std::int64_t>(size_of(storage_));
  Bucket bucket;
  for (auto layer = settings_.model.layers.rbegin(); layer != settings_.model.layers.rend(); ++layer) {
    bucket.count += layer->parameters;
    if (bucket.count * element_bytes < settings_.bucket_bytes) continue;
    buckets_.push_back(bucket);
    bucket = {.first = bucket.first + bucket.count, .count = 0};
  }
  if (bucket.count > 0) buckets_.push_back(bucket);
}

void LayersWorkload::run_step(int step) {
  strategy_.run([&](const Value::Parts&) {
    replica_step(replicas_[static_cast<std::size_t>(get_replica_context()->replica_id_in_sync_group())], step);
    return Value();
  });
}

void LayersWorkload::replica_step(Replica& replica, int step) {
  ReplicaContext& context = *get_replica_context();
  Device& device = context.device();
  device.compute_stream().wait(replica.input_ready[slot_of(step)]);
  fetch_input(replica, device, step + 1);
  forward(replica, device);
  replica.input_used[slot_of(step)] = device.compute_stream().record();
  backward(replica, context);
}

// Brings the batch of `step` to the device while the step before it computes.
void LayersWorkload::fetch_input(Replica& replica, Device& device, int step) const {
  Stream& stream = device.stream(kInputStream);
  stream.wait(replica.input_used[slot_of(step)]);
  stream.copy(replica.input[slot_of(step)], replica.host_input, Category::input);
  replica.input_ready[slot_of(step)] = stream.record();
}

void LayersWorkload::elementwise(const Replica& replica, Device& device, const Layer& layer, int passes) const {
  const std::int64_t count = replica.batch * layer.elementwise->elements;
  for (; passes > 0 && count > 0; passes -= 2) {  // an op reads once and writes once
    const std::int64_t part = passes == 1 ? std::max<std::int64_t>(1, count / 2) : count;
    Op op = op::scale_add(replica.result.flat_slice(0, part), replica.left.flat_slice(0, part), 0.5, 0);
    op.name = layer.name;
    device.compute_stream().launch(std::move(op));
  }
}

void LayersWorkload::forward(Replica& replica, Device& device) const {
  for (const Layer& layer : settings_.model.layers) {
    if (layer.gemm && replica.batch > 0) {
      const Product p = product_of(*layer.gemm, replica.batch);
      Op op = op::gemm(replica.result.flat_slice(0, p.m * p.n).reshape({p.m, p.n}),
                       replica.left.flat_slice(0, p.m * p.k).reshape({p.m, p.k}),
                       replica.right.flat_slice(0, p.k * p.n).reshape({p.k, p.n}));
      op.name = layer.name;
      op.cost.dtype = settings_.dtype;
      op.cost.bytes += p.extra_bytes - p.saved_bytes;
      device.compute_stream().launch(std::move(op));
    }
    if (layer.elementwise) elementwise(replica, device, layer, layer.elementwise->forward_passes);
  }
}

void LayersWorkload::product_gradients(const Replica& replica, Device& device, const Layer& layer, bool with_input,
                                       std::int64_t gradient_at) const {
  const Product p = product_of(*layer.gemm, replica.batch);
  const Tensor left = replica.left.flat_slice(0, p.m * p.k).reshape({p.m, p.k});
  const Tensor right = replica.right.flat_slice(0, p.k * p.n).reshape({p.k, p.n});
  const Tensor result = replica.result.flat_slice(0, p.m * p.n).reshape({p.m, p.n});
  const bool has_weights = layer.parameters >= p.k * p.n;
  const Tensor of_weights =
      has_weights ? replica.gradients.flat_slice(gradient_at, p.k * p.n).reshape({p.k, p.n}) : right;
  Op weights = op::gemm(of_weights, left, result, true, false);
  weights.name = layer.name + " weight gradient";
  weights.cost.dtype = settings_.dtype;
  weights.cost.bytes += p.extra_bytes - p.saved_bytes;
  device.compute_stream().launch(std::move(weights));
  if (!with_input) return;
  Op input = op::gemm(left, result, right, false, true);
  input.name = layer.name + " input gradient";
  input.cost.dtype = settings_.dtype;
  input.cost.bytes += p.extra_bytes - p.saved_bytes;
  device.compute_stream().launch(std::move(input));
}

void LayersWorkload::backward(Replica& replica, ReplicaContext& context) const {
  Device& device = context.device();
  std::vector<PendingReduction> pending;
  const auto reduce = [&](const Bucket& bucket) {
    pending.push_back(
        context.all_reduce_async(ReduceOp::sum, {replica.gradients.flat_slice(bucket.first, bucket.count)}));
  };
  std::int64_t known = 0;
  const auto first_product = std::find_if(settings_.model.layers.begin(), settings_.model.layers.end(),
                                          [](const Layer& layer) { return layer.gemm.has_value(); });
  for (auto layer = settings_.model.layers.rbegin(); layer != settings_.model.layers.rend(); ++layer) {
    if (layer->elementwise) elementwise(replica, device, *layer, layer->elementwise->backward_passes);
    if (layer->gemm && replica.batch > 0) {
      product_gradients(replica, device, *layer, &*layer != &*first_product, known);
    }
    known += layer->parameters;
    while (settings_.overlap && pending.size() < buckets_.size() &&
           buckets_[pending.size()].first + buckets_[pending.size()].count <= known) {
      reduce(buckets_[pending.size()]);
    }
  }
  while (pending.size() < buckets_.size()) reduce(buckets_[pending.size()]);
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    pending[i].wait();
    Op op = op::scale_add(parameters_->value().flat_slice(buckets_[i].first, buckets_[i].count),
                          replica.gradients.flat_slice(buckets_[i].first, buckets_[i].count), -kLearningRate, 1);
    op.name = "sgd";
    op.category = Category::update;
    device.compute_stream().launch(std::move(op));
  }
}

}  // namespace tandem
