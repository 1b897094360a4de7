#include "strategies/parallel/mesh_stage.h"

#include <algorithm>

#include "strategies/parallel/streams.h"
#include "strategies/values/host_values.h"

namespace tandem {
namespace {

Tensor matrix(const Tensor& flat, std::int64_t rows, std::int64_t features) {
  return flat.view(0, {rows, features});
}

}  // namespace

MeshStage::MeshStage(const MeshSeat& seat, Device& host, const LinearStack& stack, const ParallelOptions& options,
                     int stage, Range layers, int live)
    : device_(*seat.device),
      options_(options),
      sgd_(stack.sgd),
      last_layer_(stack.layers() - 1),
      stage_(stage),
      place_(seat.place),
      groups_(seat.groups),
      rows_(part_of(options.batch, options.data, seat.place.data)),
      stage_inputs_(static_cast<std::size_t>(options.micro_batches)),
      outputs_(static_cast<std::size_t>(live)) {
  for (std::int64_t i = 0; i < layers.count; ++i) make_layer(host, stack, static_cast<int>(layers.first + i));
  make_activations(stack);
  open_channels(channels_, seat, options, stage,
                {.rows = micro_batch(0).count,
                 .inputs = layers_.front().shard.inputs.count,
                 .outputs = layers_.back().shard.outputs.count,
                 .live = live,
                 .whole_inputs = layers_.front().shard.split == Split::columns,
                 .whole_outputs = layers_.back().shard.split == Split::rows});
}

Tensor MeshStage::filled(std::int64_t count) const {
  Tensor tensor = device_.allocate(DType::f32, {count});
  compute().launch(op::fill(tensor, 0));
  return tensor;
}

void MeshStage::make_layer(Device& host, const LinearStack& stack, int index) {
  const LayerShard shard = layer_shard(stack, index, options_.tensor, place_.tensor);
  const std::int64_t count = shard.shape().parameters();
  Layer layer{.shard = shard, .parameters = device_.allocate(DType::f32, {count}), .gradients = filled(count)};
  if (sgd_.momentum > 0) layer.velocity = filled(count);
  const Tensor initial = host_tensor(host, DType::f32, {count}, initial_values(stack, shard));
  compute().wait(host.compute_stream().record());
  compute().copy(layer.parameters, initial, Category::other);
  layers_.push_back(std::move(layer));
}

// The outputs of the stage's last layer are not kept, since they go to the next stage or into the loss.
void MeshStage::make_activations(const LinearStack& stack) {
  const std::int64_t rows = micro_batch(0).count;
  std::int64_t widest = 1;
  for (const Layer& layer : layers_) {
    widest = std::max({widest, layer.shard.inputs.count, layer.shard.outputs.count});
    if (&layer == &layers_.back()) break;
    for (auto& slot : outputs_) slot.push_back(device_.allocate(DType::f32, {rows * layer.shard.outputs.count}));
  }
  bias_scratch_ = device_.allocate(DType::f32, {widest});
  for (Tensor& gradient : of_activations_) gradient = device_.allocate(DType::f32, {rows * widest});
  if (is_first()) {
    const LayerShard& first = layers_.front().shard;
    whole_inputs_ = device_.allocate(DType::f32, {rows_.count, stack.sizes.front()});
    const bool takes_part = first.inputs.count < stack.sizes.front();
    inputs_ = takes_part ? device_.allocate(DType::f32, {rows_.count, first.inputs.count}) : whole_inputs_;
  }
  if (!is_last()) return;
  const std::int64_t classes = stack.sizes.back();
  labels_ = device_.allocate(DType::i32, {rows_.count});
  losses_ = device_.allocate(DType::f32, {options_.micro_batches});
  logits_gradient_ = device_.allocate(DType::f32, {rows * classes});
  for (auto& slot : outputs_) slot.push_back(device_.allocate(DType::f32, {rows * classes}));
}

void MeshStage::fetch(const Tensor& inputs, const Tensor& labels) {
  Stream& stream = device_.stream(kInputStream);
  if (is_first()) stream.copy(whole_inputs_, inputs.slice(rows_.first, rows_.count), Category::input);
  if (is_last()) stream.copy(labels_, labels.slice(rows_.first, rows_.count), Category::input);
  compute().wait(stream.record());
  if (!is_first() || inputs_.is_same(whole_inputs_)) return;
  compute().launch(op::take_along(inputs_, whole_inputs_, 1, layers_.front().shard.inputs.first));
}

void MeshStage::forward(int index) {
  const Range rows = micro_batch(index);
  Tensor& stage_input = stage_inputs_[static_cast<std::size_t>(index)];
  stage_input = is_first() ? inputs_.slice(rows.first, rows.count) : channels_.input->receive(rows.count);
  Tensor input = stage_input;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const LayerShard& shard = layers_[i].shard;
    const LinearTensors views = linear_views(layers_[i].parameters, shard.shape());
    const Tensor output = output_of(index, i);
    const LinearOps ops(compute(), shard.layer);
    ops.product(output, input, views.weights);
    if (shard.split == Split::rows) groups_.tensor->all_reduce(output, compute());
    ops.activate(output, views.bias, shard.layer != last_layer_);
    input = output;
  }
  if (is_last()) {
    loss(index, input);
  } else {
    channels_.output->send();
  }
}

Tensor MeshStage::output_of(int index, std::size_t layer) {
  const std::int64_t rows = micro_batch(index).count;
  if (layer + 1 == layers_.size() && !is_last()) return channels_.output->next(rows);
  const std::vector<Tensor>& slot = outputs_[static_cast<std::size_t>(index) % outputs_.size()];
  return matrix(slot[layer], rows, layers_[layer].shard.outputs.count);
}

void MeshStage::loss(int index, const Tensor& logits) {
  const Range rows = micro_batch(index);
  const double scale = 1.0 / static_cast<double>(options_.batch);
  compute().launch(op::softmax_cross_entropy({.loss = losses_.slice(index, 1),
                                              .gradient = matrix(logits_gradient_, rows.count, logits.shape()[1]),
                                              .correct = {},
                                              .logits = logits,
                                              .labels = labels_.slice(rows.first, rows.count),
                                              .loss_scale = scale,
                                              .gradient_scale = scale}));
}

void MeshStage::backward(int index) {
  const std::int64_t rows = micro_batch(index).count;
  Tensor of_output = is_last() ? matrix(logits_gradient_, rows, layers_.back().shard.outputs.count)
                               : channels_.gradient->receive(rows);
  for (std::size_t i = layers_.size(); i-- > 0;) {
    const Tensor of_input = input_gradient_of(i, rows);
    layer_backward(i, index, of_output, of_input);
    of_output = of_input;
  }
  if (!is_last()) channels_.gradient->release();
  if (!is_first()) {
    channels_.input_gradient->send();
    channels_.input->release();
  }
}

// Returns the memory for the gradients of a layer's input; none for the input of the whole model.
Tensor MeshStage::input_gradient_of(std::size_t layer, std::int64_t rows) {
  if (layer > 0) return matrix(of_activations_[layer % 2], rows, layers_[layer].shard.inputs.count);
  return is_first() ? Tensor() : channels_.input_gradient->next(rows);
}

void MeshStage::layer_backward(std::size_t i, int index, const Tensor& of_output, const Tensor& of_input) {
  Layer& layer = layers_[i];
  const LinearShape shape = layer.shard.shape();
  const LinearOps ops(compute(), layer.shard.layer);
  const Tensor input = i == 0 ? stage_inputs_[static_cast<std::size_t>(index)] : output_of(index, i - 1);
  Event summed;
  if (of_input) {
    ops.input_gradient(of_input, of_output, linear_views(layer.parameters, shape).weights);
    summed = sum_input_gradient(layer, of_input);
  }
  ops.parameter_gradients(linear_views(layer.gradients, shape), input, of_output, index > 0,
                          bias_scratch_.flat_slice(0, shape.outputs));
  if (index + 1 == options_.micro_batches && options_.data > 1) {
    Stream& stream = device_.stream(kCommunicationStream);
    stream.wait(compute().record());
    groups_.data->all_reduce(layer.gradients, stream);
    layer.reduced = stream.record();
  }
  if (!of_input) return;
  compute().wait(summed);
  ops.relu_gradient(of_input, input);
}

// Runs on a stream of its own, while the gradients of the weights are computed.
Event MeshStage::sum_input_gradient(const Layer& layer, const Tensor& of_input) {
  if (layer.shard.split == Split::rows || groups_.tensor->size() == 1) return {};
  Stream& stream = device_.stream(kTensorStream);
  stream.wait(compute().record());
  groups_.tensor->all_reduce(of_input, stream);
  return stream.record();
}

void MeshStage::update() {
  for (const Layer& layer : layers_) {
    compute().wait(layer.reduced);
    launch_sgd(compute(), layer.parameters, layer.velocity, layer.gradients, sgd_);
  }
}

}  // namespace tandem
