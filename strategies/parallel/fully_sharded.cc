#include "strategies/parallel/fully_sharded.h"

#include <algorithm>

#include "strategies/multi_worker_mirrored.h"

namespace tandem {
namespace {

constexpr const char* kDataAxis = "data";

}  // namespace

FullyShardedTrainer::FullyShardedTrainer(Worker& worker, LinearStack stack, const ParallelOptions& options)
    : worker_(worker),
      stack_(std::move(stack)),
      batch_(options.batch),
      mesh_(worker, devices_in_sync(worker), {{.name = kDataAxis, .size = options.data}}),
      group_(worker, mesh_.communicator(0, kDataAxis)) {
  check_division(stack_, options);
  for (std::size_t i = 0; i < mesh_.local_devices().size(); ++i) replicas_.push_back(make_replica(i));
}

FullyShardedTrainer::Replica FullyShardedTrainer::make_replica(std::size_t index) {
  Device& device = *mesh_.local_devices()[index];
  const int rank = mesh_.local_ranks()[index];
  Replica replica{.device = &device, .rows = part_of(batch_, mesh_.device_count(), rank)};
  std::vector<ShardedParameters::Unit> units;
  for (int layer = 0; layer < stack_.layers(); ++layer) {
    const std::int64_t weights = stack_.shape(layer).inputs * stack_.shape(layer).outputs;
    const auto value = [weights, values = stack_.initial_weights(layer)](std::int64_t element) {
      return element < weights ? values(element) : 0.0;
    };
    units.push_back({.count = stack_.shape(layer).parameters(), .initial_value = value});
  }
  replica.parameters =
      std::make_unique<ShardedParameters>(device, worker_.cpu(), group_, rank, units, DType::f32, stack_.sgd);
  const std::int64_t rows = replica.rows.count;
  for (const std::int64_t features : stack_.sizes) {
    replica.activations.push_back(device.allocate(DType::f32, {rows, features}));
  }
  const std::int64_t widest = *std::max_element(stack_.sizes.begin() + 1, stack_.sizes.end());
  for (Tensor& gradient : replica.of_activations) gradient = device.allocate(DType::f32, {rows * widest});
  replica.labels = device.allocate(DType::i32, {rows});
  replica.loss = device.allocate(DType::f32, {1});
  return replica;
}

Tensor FullyShardedTrainer::train_step(const Tensor& inputs, const Tensor& labels) {
  const auto count = static_cast<std::int64_t>(replicas_.size());
  Tensor losses = worker_.cpu().allocate(DType::f32, {count});
  worker_.run_concurrently(static_cast<int>(count), [&](int i) {
    const Replica& replica = replicas_[static_cast<std::size_t>(i)];
    step(replica, inputs, labels);
    replica.device->compute_stream().copy(losses.slice(i, 1), replica.loss, Category::other);
  });
  return losses;
}

void FullyShardedTrainer::step(const Replica& replica, const Tensor& inputs, const Tensor& labels) const {
  replica.parameters->prefetch(0);
  fetch(replica, inputs, labels);
  forward(replica);
  backward(replica);
  replica.parameters->update();
}

void FullyShardedTrainer::fetch(const Replica& replica, const Tensor& inputs, const Tensor& labels) const {
  Stream& stream = replica.device->stream(kInputStream);
  stream.copy(replica.activations.front(), inputs.slice(replica.rows.first, replica.rows.count), Category::input);
  stream.copy(replica.labels, labels.slice(replica.rows.first, replica.rows.count), Category::input);
  replica.device->compute_stream().wait(stream.record());
}

void FullyShardedTrainer::forward(const Replica& replica) const {
  ShardedParameters& parameters = *replica.parameters;
  for (int layer = 0; layer < stack_.layers(); ++layer) {
    const bool is_last = layer + 1 == stack_.layers();
    const auto index = static_cast<std::size_t>(layer);
    const LinearTensors views = linear_views(parameters.acquire(layer), stack_.shape(layer));
    if (!is_last) parameters.prefetch(layer + 1);
    const LinearOps ops(replica.device->compute_stream(), layer);
    ops.product(replica.activations[index + 1], replica.activations[index], views.weights);
    ops.activate(replica.activations[index + 1], views.bias, !is_last);
    parameters.release(layer);
  }
  const double scale = 1.0 / static_cast<double>(batch_);
  replica.device->compute_stream().launch(op::softmax_cross_entropy({.loss = replica.loss,
                                                                     .gradient = gradient_of(replica, stack_.layers()),
                                                                     .correct = {},
                                                                     .logits = replica.activations.back(),
                                                                     .labels = replica.labels,
                                                                     .loss_scale = scale,
                                                                     .gradient_scale = scale}));
}

Tensor FullyShardedTrainer::gradient_of(const Replica& replica, int activation) const {
  const Shape& shape = replica.activations[static_cast<std::size_t>(activation)].shape();
  return replica.of_activations[static_cast<std::size_t>(activation % 2)]
      .flat_slice(0, shape.element_count())
      .reshape(shape);
}

void FullyShardedTrainer::backward(const Replica& replica) const {
  ShardedParameters& parameters = *replica.parameters;
  for (int layer = stack_.layers() - 1; layer >= 0; --layer) {
    const Tensor& input = replica.activations[static_cast<std::size_t>(layer)];
    const Tensor of_output = gradient_of(replica, layer + 1);
    const LinearTensors views = linear_views(parameters.acquire(layer), stack_.shape(layer));
    if (layer > 0) parameters.prefetch(layer - 1);
    const LinearOps ops(replica.device->compute_stream(), layer);
    const LinearTensors gradients = linear_views(parameters.gradients(layer), stack_.shape(layer));
    ops.parameter_gradients(gradients, input, of_output, false, {});
    parameters.reduce_gradients(layer);
    if (layer > 0) {
      ops.input_gradient(gradient_of(replica, layer), of_output, views.weights);
      ops.relu_gradient(gradient_of(replica, layer), input);
    }
    parameters.release(layer);
  }
}

// Concatenates the pieces of all devices and leaves out the padding.
LinearTensors FullyShardedTrainer::read_layer(int layer) {
  Device& host = worker_.cpu();
  const std::int64_t piece = replicas_.front().parameters->piece(layer).element_count();
  const Tensor flat = host.allocate(DType::f32, {piece * mesh_.device_count()});
  for (std::size_t i = 0; i < replicas_.size(); ++i) {
    host.compute_stream().wait(replicas_[i].device->compute_stream().record());
    host.compute_stream().copy(flat.slice(mesh_.local_ranks()[i] * piece, piece), replicas_[i].parameters->piece(layer),
                               Category::other);
  }
  return linear_views(flat, stack_.shape(layer));
}

std::unique_ptr<ParallelTrainer> make_fully_sharded(Worker& worker, LinearStack stack, const ParallelOptions& options) {
  return std::make_unique<FullyShardedTrainer>(worker, std::move(stack), options);
}

}  // namespace tandem
