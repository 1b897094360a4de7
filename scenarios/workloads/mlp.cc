#include "scenarios/workloads/mlp.h"

#include <fmt/format.h>

#include <cmath>
#include <random>

#include "strategies/replica_context.h"

namespace tandem {
namespace {

Op named(std::string name, Op op, Category category = Category::compute) {
  op.name = std::move(name);
  op.category = category;
  return op;
}

// He and others, "Delving Deep into Rectifiers" (2015): variance 2 / inputs. Uniform, and by hand, since the standard
// library's distributions differ between implementations.
std::function<double(std::int64_t)> he_uniform(std::int64_t inputs, std::int64_t count, std::uint64_t seed) {
  auto values = std::make_shared<std::vector<float>>(static_cast<std::size_t>(count));
  std::mt19937_64 random(seed);
  const double limit = std::sqrt(6.0 / static_cast<double>(inputs));
  for (float& value : *values) {
    const double unit = static_cast<double>(random() >> 11) * 0x1p-53;
    value = static_cast<float>((2 * unit - 1) * limit);
  }
  return [values](std::int64_t element) { return (*values)[static_cast<std::size_t>(element)]; };
}

HostArray images_of(const LabelledRows& rows) {
  return {.row_shape = {rows.columns}, .values = rows.values};
}
HostArray labels_of(const LabelledRows& rows) {
  return {.row_shape = {}, .values = rows.labels};
}

}  // namespace

MlpWorkload::MlpWorkload(const MlpSettings& settings, int global_batch, Strategy& strategy)
    : settings_(settings), global_batch_(global_batch), strategy_(strategy) {}

void MlpWorkload::prepare() {
  const Scope scope = strategy_.scope();
  TrainTestSplit split = split_rows(*settings_.rows);
  test_ = std::move(split.test);
  std::int64_t inputs = split.train.columns;
  for (std::size_t i = 0; i < settings_.hidden.size(); ++i) {
    create_layer(i, inputs, settings_.hidden[i]);
    inputs = settings_.hidden[i];
  }
  create_layer(settings_.hidden.size(), inputs, split.train.classes);
  const Dataset dataset = Dataset::from_tensor_slices({images_of(split.train), labels_of(split.train)})
                              .shuffle(settings_.seed)
                              .repeat()
                              .batch(global_batch_);
  iterator_.emplace(strategy_.experimental_distribute_dataset(dataset).iterator());
}

void MlpWorkload::create_layer(std::size_t index, std::int64_t inputs, std::int64_t outputs) {
  Layer layer;
  layer.inputs = inputs;
  layer.outputs = outputs;
  layer.weights =
      strategy_.create_variable({.name = fmt::format("layer{}/weights", index),
                                 .shape = {inputs, outputs},
                                 .initial_value = he_uniform(inputs, inputs * outputs, settings_.seed + index),
                                 .aggregation = VariableAggregation::sum});
  layer.bias = strategy_.create_variable({.name = fmt::format("layer{}/bias", index),
                                          .shape = {outputs},
                                          .initial_value = {},
                                          .aggregation = VariableAggregation::sum});
  if (settings_.momentum > 0) {
    layer.weights_velocity = create_velocity(*layer.weights);
    layer.bias_velocity = create_velocity(*layer.bias);
  }
  layers_.push_back(std::move(layer));
}

std::shared_ptr<Variable> MlpWorkload::create_velocity(const Variable& variable) {
  return strategy_.create_variable(
      {.name = variable.name() + "/velocity", .shape = variable.shape(), .initial_value = {}, .trainable = false});
}

void MlpWorkload::run_step(int /*step*/) {
  const Value batch = iterator_->next().value();
  const Value losses = strategy_.run(
      [this](const Value::Parts& arguments) {
        return replica_step(arguments[0].parts()[0].tensor(), arguments[0].parts()[1].tensor());
      },
      {batch});
  losses_.push_back(strategy_.reduce(ReduceOp::sum, losses).tensor());
}

Value MlpWorkload::replica_step(const Tensor& inputs, const Tensor& labels) {
  ReplicaContext& context = *get_replica_context();
  Device& device = context.device();
  const Activations activations = forward(device, inputs);
  const Tensor& logits = activations.outputs.back();
  const Tensor loss = device.allocate(DType::f32, {1});
  const Tensor gradient = device.allocate(DType::f32, logits.shape());
  device.compute_stream().launch(op::softmax_cross_entropy({.loss = loss,
                                                            .gradient = gradient,
                                                            .correct = {},
                                                            .logits = logits,
                                                            .labels = labels,
                                                            .loss_scale = 1.0 / global_batch_,
                                                            .gradient_scale = 1.0 / global_batch_}));
  const std::vector<Tensor> gradients = backward(device, activations, gradient);
  context.all_reduce_async(ReduceOp::sum, gradients).wait();
  update(device, gradients);
  return loss;
}

MlpWorkload::Activations MlpWorkload::forward(Device& device, const Tensor& inputs) const {
  Stream& stream = device.compute_stream();
  Activations activations{.outputs = {inputs}};
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    const Tensor output = device.allocate(DType::f32, {inputs.shape()[0], layer.outputs});
    stream.launch(
        named(fmt::format("forward {}", i), op::gemm(output, activations.outputs.back(), layer.weights->value())));
    stream.launch(op::add_bias(output, layer.bias->value()));
    if (i + 1 < layers_.size()) stream.launch(op::relu(output, output));
    activations.outputs.push_back(output);
  }
  return activations;
}

// The gradients of every weight and bias, last layer first: in the order in which they become known.
std::vector<Tensor> MlpWorkload::backward(Device& device, const Activations& activations, Tensor gradient) const {
  Stream& stream = device.compute_stream();
  std::vector<Tensor> gradients;
  for (std::size_t i = layers_.size(); i-- > 0;) {
    const Layer& layer = layers_[i];
    const Tensor& input = activations.outputs[i];
    const Tensor of_weights = device.allocate(DType::f32, layer.weights->shape());
    const Tensor of_bias = device.allocate(DType::f32, layer.bias->shape());
    stream.launch(named(fmt::format("weight gradient {}", i), op::gemm(of_weights, input, gradient, true, false)));
    stream.launch(op::sum_axis(of_bias, gradient, 0));
    gradients.push_back(of_weights);
    gradients.push_back(of_bias);
    if (i == 0) break;
    const Tensor of_input = device.allocate(DType::f32, input.shape());
    stream.launch(
        named(fmt::format("input gradient {}", i), op::gemm(of_input, gradient, layer.weights->value(), false, true)));
    stream.launch(op::relu_gradient(of_input, of_input, input));
    gradient = of_input;
  }
  return gradients;
}

// The same gradients on every replica keep the mirrored components equal.
void MlpWorkload::update(Device& device, const std::vector<Tensor>& gradients) const {
  Stream& stream = device.compute_stream();
  const auto change = [&](const Variable& variable, const std::shared_ptr<Variable>& velocity, Tensor gradient) {
    if (velocity) {
      stream.launch(
          named("momentum", op::scale_add(velocity->value(), gradient, 1, settings_.momentum), Category::update));
      gradient = velocity->value();
    }
    stream.launch(
        named("sgd", op::scale_add(variable.value(), gradient, -settings_.learning_rate, 1), Category::update));
  };
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[layers_.size() - 1 - i];
    change(*layer.weights, layer.weights_velocity, gradients[2 * i]);
    change(*layer.bias, layer.bias_velocity, gradients[2 * i + 1]);
  }
}

double MlpWorkload::test_accuracy() {
  Worker& worker = strategy_.extended().worker();
  Device& host = worker.cpu();
  Device& device = *strategy_.extended().worker_devices().front();
  Stream& stream = device.compute_stream();
  const Tensor host_images = host.allocate(DType::f32, {test_.rows(), test_.columns});
  const Tensor host_labels = host.allocate(DType::i32, {test_.rows()});
  std::copy(test_.values.begin(), test_.values.end(), host_images.values<float>().begin());
  std::copy(test_.labels.begin(), test_.labels.end(), host_labels.values<std::int32_t>().begin());
  const Tensor images = device.allocate(DType::f32, host_images.shape());
  const Tensor labels = device.allocate(DType::i32, host_labels.shape());
  stream.copy(images, host_images, Category::input);
  stream.copy(labels, host_labels, Category::input);
  const Tensor loss = device.allocate(DType::f32, {1});
  const Tensor correct = device.allocate(DType::f32, {1});
  stream.launch(op::softmax_cross_entropy({.loss = loss,
                                           .gradient = {},
                                           .correct = correct,
                                           .logits = forward(device, images).outputs.back(),
                                           .labels = labels}));
  const Tensor host_correct = host.allocate(DType::f32, {1});
  stream.copy(host_correct, correct, Category::other);
  stream.synchronize();
  return static_cast<double>(host_correct.values<float>()[0]) / test_.rows();
}

void MlpWorkload::finish(Report& report, bool carries_values) {
  if (!carries_values) return;
  for (const Tensor& loss : losses_) report.loss.push_back(static_cast<double>(loss.values<float>()[0]));
  report.metrics["test_accuracy"] = test_accuracy();
}

}  // namespace tandem
