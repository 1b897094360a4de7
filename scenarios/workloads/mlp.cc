#include "scenarios/workloads/mlp.h"

#include <fmt/format.h>

#include "scenarios/workloads/computed/he_uniform.h"
#include "strategies/strategy/replica_context.h"
#include "strategies/variables/checkpoint.h"

namespace tandem {
namespace {

Op named(Name name, Op op, Category category = Category::compute) {
  op.name = name;
  op.category = category;
  return op;
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
  share_ = batch_share(global_batch_, strategy_);
  TrainTestSplit split = split_rows(*settings_.rows);
  test_ = std::move(split.test);
  if (evaluation()) evaluated_.emplace(test_, *evaluation());
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
  iterator_.emplace(distributed(dataset).iterator());
}

// Asynchronous workers take the same pieces of each batch as synchronous ones.
DistributedDataset MlpWorkload::distributed(const Dataset& batches) {
  if (share_.in_step) return strategy_.experimental_distribute_dataset(batches);
  return strategy_.distribute_datasets_from_function([&](const InputContext& /*context*/) {
    return batches.legacy_rebatch(share_.workers * share_.replicas).shard(share_.workers, share_.worker);
  });
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
    create_velocity(layer.weights);
    create_velocity(layer.bias);
  }
  layers_.push_back(std::move(layer));
}

// Creates the velocity on the devices of its variable, so that one update can change both.
void MlpWorkload::create_velocity(const std::shared_ptr<Variable>& variable) {
  const auto beside = strategy_.extended().colocate_vars_with(variable);
  velocities_[variable.get()] = strategy_.create_variable({.name = variable->name() + "/velocity",
                                                           .shape = variable->shape(),
                                                           .initial_value = {},
                                                           .trainable = false,
                                                           .aggregation = VariableAggregation::sum});
}

void MlpWorkload::run_step(int /*step*/) {
  const Value batch = iterator_->next().value();
  const Value losses = strategy_.run(
      [this](const Value::Parts& arguments) {
        return replica_step(arguments[0].parts()[0].tensor(), arguments[0].parts()[1].tensor());
      },
      {batch});
  losses_.add(strategy_.reduce(ReduceOp::sum, losses).tensor());
}

Value MlpWorkload::replica_step(const Tensor& inputs, const Tensor& labels) {
  Device& device = get_replica_context()->device();
  std::vector<MlpParameters> parameters = read_parameters();
  const Activations activations = mlp_forward(device, parameters, inputs);
  const Tensor& logits = activations.back();
  Tensor loss = device.allocate(DType::f32, {1});
  const Tensor gradient = device.allocate(DType::f32, logits.shape());
  device.compute_stream().launch(op::softmax_cross_entropy({.loss = loss,
                                                            .gradient = gradient,
                                                            .correct = {},
                                                            .logits = logits,
                                                            .labels = labels,
                                                            .loss_scale = 1.0 / share_.examples_in_sync,
                                                            .gradient_scale = 1.0 / share_.examples_in_sync}));
  updates_.begin(variables_of_gradients(), backward(device, parameters, activations, gradient));
  parameters.clear();  // updating a value that is still held would copy it
  updates_.apply([this](Variable& variable, const Tensor& sum) { update(variable, sum); });
  return loss;
}

std::vector<MlpParameters> MlpWorkload::read_parameters() const {
  std::vector<MlpParameters> parameters;
  for (const Layer& layer : layers_) parameters.push_back({layer.weights->value(), layer.bias->value()});
  return parameters;
}

// Computes the gradients of every weight and bias, from the last layer to the first.
std::vector<Tensor> MlpWorkload::backward(Device& device, const std::vector<MlpParameters>& parameters,
                                          const Activations& activations, Tensor gradient) const {
  Stream& stream = device.compute_stream();
  std::vector<Tensor> gradients;
  for (std::size_t i = layers_.size(); i-- > 0;) {
    const Tensor& input = activations[i];
    const Tensor of_weights = device.allocate(DType::f32, layers_[i].weights->shape());
    const Tensor of_bias = device.allocate(DType::f32, layers_[i].bias->shape());
    stream.launch(named(fmt::format("weight gradient {}", i), op::gemm(of_weights, input, gradient, true, false)));
    stream.launch(op::sum_axis(of_bias, gradient, 0));
    gradients.push_back(of_weights);
    gradients.push_back(of_bias);
    if (i == 0) break;
    const Tensor of_input = device.allocate(DType::f32, input.shape());
    stream.launch(
        named(fmt::format("input gradient {}", i), op::gemm(of_input, gradient, parameters[i].weights, false, true)));
    stream.launch(op::relu_gradient(of_input, of_input, input));
    gradient = of_input;
  }
  return gradients;
}

// Returns the variables in the order of backward().
GradientUpdates::Variables MlpWorkload::variables_of_gradients() const {
  GradientUpdates::Variables variables;
  for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
    variables.push_back(layer->weights);
    variables.push_back(layer->bias);
  }
  return variables;
}

void MlpWorkload::update(Variable& variable, Tensor gradient) const {
  Stream& stream = variable.handle().device().compute_stream();
  if (const auto velocity = velocities_.find(&variable); velocity != velocities_.end()) {
    const Tensor& mean = velocity->second->handle();
    stream.launch(named("momentum", op::scale_add(mean, gradient, 1, settings_.momentum), Category::update));
    gradient = mean;
  }
  stream.launch(
      named("sgd", op::scale_add(variable.handle(), gradient, -settings_.learning_rate, 1), Category::update));
}

// Every replica reads the parameters, since some strategies need all of them for a read; the first one computes.
double MlpWorkload::test_accuracy() {
  Tensor correct;
  strategy_.run([&](const Value::Parts&) {
    const std::vector<MlpParameters> parameters = read_parameters();
    if (get_replica_context()->local_replica_id() == 0) correct = count_correct(parameters);
    return Value();
  });
  return static_cast<double>(correct.values<float>()[0]) / test_.rows();
}

// Computes the accuracy on the test rows, in a replica context. The result is on the host's device.
Tensor MlpWorkload::count_correct(const std::vector<MlpParameters>& parameters) const {
  Device& device = get_replica_context()->device();
  Device& host = strategy_.extended().worker().cpu();
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
                                           .logits = mlp_forward(device, parameters, images).back(),
                                           .labels = labels}));
  Tensor host_correct = host.allocate(DType::f32, {1});
  stream.copy(host_correct, correct, Category::other);
  stream.synchronize();
  return host_correct;
}

Tensor MlpWorkload::evaluate() {
  const Value sums = strategy_.run([&](const Value::Parts&) {
    const ReplicaContext& replica = *get_replica_context();
    return evaluated_->run(replica.device(), strategy_.extended().worker().cpu(), read_parameters(),
                           share_.worker * share_.replicas + replica.local_replica_id(),
                           share_.workers * share_.replicas);
  });
  return strategy_.reduce(ReduceOp::sum, sums).tensor();
}

std::vector<Tensor> MlpWorkload::variables() {
  std::vector<Tensor> variables;
  for (const Layer& layer : layers_) {
    variables.push_back(layer.weights->saved_value());
    variables.push_back(layer.bias->saved_value());
  }
  return variables;
}

void MlpWorkload::add_to(Checkpoint& checkpoint) {
  for (const Layer& layer : layers_) {
    for (const auto& variable : {layer.weights, layer.bias}) {
      checkpoint.add(variable->name(), variable);
      const auto velocity = velocities_.find(variable.get());
      if (velocity != velocities_.end()) checkpoint.add(velocity->second->name(), velocity->second);
    }
  }
  losses_.add_to(checkpoint);
}

void MlpWorkload::pass_over(int steps) {
  iterator_->skip(steps);
}

void MlpWorkload::finish(Report& report, bool carries_values) {
  if (!carries_values) return;
  for (const float loss : losses_.all()) report.loss.push_back(static_cast<double>(loss));
  report.metrics["test_accuracy"] = test_accuracy();
}

}  // namespace tandem
