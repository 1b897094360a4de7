#include "scenarios/workloads/layers.h"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/workloads/batch_share.h"
#include "strategies/parallel/stages/lone_layer.h"
#include "strategies/strategy/replica_context.h"
#include "strategies/variables/checkpoint.h"

namespace tandem {

LayersWorkload::LayersWorkload(std::unique_ptr<TrainableModel> model, bool variables_are_tensors, int global_batch,
                               Strategy& strategy)
    : model_(std::move(model)),
      settings_(model_->settings()),
      recomputation_(model_->model().layers, settings_.recomputed),
      variables_are_tensors_(variables_are_tensors),
      global_batch_(global_batch),
      strategy_(strategy) {}

void LayersWorkload::prepare() {
  const Scope scope = strategy_.scope();
  divide_into_buckets();
  create_variables();
  model_->make_batch(0, host());
  const std::vector<Device*>& devices = strategy_.extended().worker_devices();
  const BatchShare share = batch_share(global_batch_, strategy_);
  const bool evaluates_here = evaluation() && !evaluation()->is_beside;
  const BatchShare evaluated = evaluates_here ? batch_share(evaluation()->batch, strategy_) : BatchShare();
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const Range none{.first = 0, .count = 0};
    replicas_.push_back(
        make_replica(*devices[i], {.first = share.first[i], .count = share.local[i]},
                     evaluates_here ? Range{.first = evaluated.first[i], .count = evaluated.local[i]} : none));
  }
  for (Bucket& bucket : buckets_) create_moments(bucket);
}

Device& LayersWorkload::host() const {
  return strategy_.extended().worker().cpu();
}

LayersWorkload::Replica LayersWorkload::make_replica(Device& device, const Range& rows, const Range& evaluated) {
  Replica replica{.batch = {.first = rows.first, .examples = rows.count, .has_inputs = true, .has_labels = true},
                  .passes = passes_of(rows)};
  const std::vector<StagePart> parts{{.first = 0,
                                      .end = layers().size(),
                                      .examples = std::max(replica.passes.front().examples, evaluated.count),
                                      .passes = static_cast<int>(replica.passes.size())}};
  replica.computation = std::move(model_->make_stages(device, host(), parts).front());
  replica.gradients = device.allocate(settings_.parameter_type(), {std::max<std::int64_t>(1, parameters())});
  device.compute_stream().launch(op::fill(replica.gradients, 0));
  const Batch batch = model_->host_batch(replica.batch, host());
  replica.input.emplace(device, batch);
  replica.input->fetch(0, batch);
  if (evaluated.count > 0) {
    replica.evaluated = {.first = evaluated.first, .examples = evaluated.count, .has_inputs = true, .has_labels = true};
    replica.evaluation_input.emplace(device, model_->host_batch(replica.evaluated, host()));
  }
  return replica;
}

Tensor LayersWorkload::evaluate() {
  const Value sums = strategy_.run([&](const Value::Parts&) {
    return evaluate_on(replicas_[static_cast<std::size_t>(get_replica_context()->local_replica_id())]);
  });
  return strategy_.reduce(ReduceOp::sum, sums).tensor();
}

Value LayersWorkload::evaluate_on(Replica& replica) const {
  const Batch batch = model_->host_batch(replica.evaluated, host());
  const Pass pass{.first = replica.evaluated.first, .examples = replica.evaluated.examples};
  Device& device = get_replica_context()->device();
  const int end = replica.evaluation_passes + evaluation()->passes;
  replica.evaluation_input->fetch(replica.evaluation_passes, batch);
  for (int& i = replica.evaluation_passes; i < end; ++i) {
    replica.computation->begin_step(replica.evaluation_input->arrive(i));
    if (i + 1 < end) replica.evaluation_input->fetch(i + 1, batch);
    forward(replica, pass);
    replica.evaluation_input->release(i);
  }
  const Tensor sums = device.allocate(DType::f32, {kEvaluationSums});
  device.compute_stream().launch(op::fill(sums, 0));
  return sums;
}

std::vector<Tensor> LayersWorkload::variables() {
  std::vector<Tensor> variables;
  for (const Bucket& bucket : buckets_) variables.push_back(bucket.parameters->saved_value());
  return variables;
}

// Divides the gradients, from those of the last layer to those of the first, into buckets of bucket_bytes or more; the
// last bucket may be smaller. Where each tensor is a variable, a bucket is a tensor.
void LayersWorkload::divide_into_buckets() {
  const auto element_bytes = static_cast<std::int64_t>(size_of(settings_.parameter_type()));
  Bucket bucket;
  const auto close = [&] {
    buckets_.push_back(bucket);
    bucket = {.first = bucket.end()};
  };
  for (std::size_t index = layers().size(); index-- > 0;) {
    const Layer& layer = layers()[index];
    first_gradients_.push_back(bucket.end());
    for (auto tensor = layer.tensors.rbegin(); tensor != layer.tensors.rend(); ++tensor) {
      bucket.count += *tensor;
      bucket.first_layer = index;
      if (variables_are_tensors_) close();
    }
    if (bucket.count > 0 && bucket.first_layer == index && bucket.count * element_bytes >= settings_.bucket_bytes) {
      close();
    }
  }
  if (bucket.count > 0) close();
  std::ranges::reverse(first_gradients_);
}

std::int64_t LayersWorkload::parameters() const {
  return buckets_.empty() ? 0 : buckets_.back().end();
}

// If tensors are variables, creates them in the order of the model, because parameter servers take them in turn.
void LayersWorkload::create_variables() {
  for (std::size_t i = 0; i < buckets_.size(); ++i) {
    Bucket& bucket = buckets_[variables_are_tensors_ ? buckets_.size() - 1 - i : i];
    bucket.parameters =
        strategy_.create_variable({.name = fmt::format("{}{}", variables_are_tensors_ ? "tensor" : "bucket", i),
                                   .dtype = settings_.parameter_type(),
                                   .shape = {bucket.count},
                                   .initial_value = first_values(bucket),
                                   .aggregation = VariableAggregation::sum});
  }
}

// Creates the optimizer's moments on the devices of their parameters, so that one update can change all.
void LayersWorkload::create_moments(Bucket& bucket) {
  const auto beside = strategy_.extended().colocate_vars_with(bucket.parameters);
  for (int i = 0; i < replicas_.front().computation->moments(); ++i) {
    bucket.moments.push_back(
        strategy_.create_variable({.name = fmt::format("{}/moment{}", bucket.parameters->name(), i),
                                   .dtype = settings_.parameter_type(),
                                   .shape = {bucket.count},
                                   .initial_value = {},
                                   .trainable = false,
                                   .aggregation = VariableAggregation::sum}));
  }
}

FirstValues LayersWorkload::first_values(const Bucket& bucket) const {
  std::vector<ValuesAt> values;
  for (std::size_t i = layers().size(); i-- > bucket.first_layer;) {
    const std::int64_t first = first_gradients_[i];
    if (first < bucket.first || first >= bucket.end() || layers()[i].parameters() == 0) continue;
    values.push_back({.first = first - bucket.first, .values = model_->first_values(i, {.end = layers().size()})});
  }
  return joined(std::move(values));
}

void LayersWorkload::run_step(int step) {
  step_ = step;
  model_->make_batch(step + 1, host());
  const Value losses = strategy_.run([&](const Value::Parts&) {
    return replica_step(replicas_[static_cast<std::size_t>(get_replica_context()->local_replica_id())], step);
  });
  if (model_->has_values()) losses_.add(strategy_.reduce(ReduceOp::sum, losses).tensor());
}

Value LayersWorkload::replica_step(Replica& replica, int step) {
  replica.computation->begin_step(replica.input->arrive(step));
  replica.input->fetch(step + 1, model_->host_batch(replica.batch, host()));
  for (const Pass& pass : replica.passes) {
    forward(replica, pass);
    if (pass.is_last) replica.input->release(step);
    backward(replica, pass);
  }
  return model_->has_values() ? Value(losses_of(replica)) : Value();
}

// The computation overwrites its losses in the next step.
Tensor LayersWorkload::losses_of(const Replica& replica) const {
  const Tensor losses = replica.computation->losses();
  Tensor copy = losses.device().allocate(losses.dtype(), losses.shape());
  losses.device().compute_stream().launch(op::scale_add(copy, losses, 1, 0));
  return copy;
}

std::vector<Pass> LayersWorkload::passes_of(const Range& rows) const {
  const int count = settings_.gradient_accumulation_steps;
  std::vector<Pass> passes;
  for (int i = 0; i < count; ++i) {
    const Range mine = part_of(rows.count, count, i);
    passes.push_back({.index = i,
                      .first = rows.first + mine.first,
                      .offset = mine.first,
                      .examples = mine.count,
                      .is_first = i == 0,
                      .is_last = i + 1 == count});
  }
  return passes;
}

std::size_t LayersWorkload::bucket_of(std::int64_t parameter) const {
  const auto after =
      std::ranges::upper_bound(buckets_, parameter, {}, [](const Bucket& bucket) { return bucket.first; });
  return static_cast<std::size_t>(after - buckets_.begin()) - 1;
}

LayerTensors LayersWorkload::tensors(const Replica& replica, std::size_t layer) const {
  const auto parameters = [&](std::int64_t first, std::int64_t count) {
    if (replica.values.empty()) return Tensor();
    const std::size_t bucket = bucket_of(first);
    return replica.values[bucket].flat_slice(first - buckets_[bucket].first, count);
  };
  LayerTensors tensors;
  const std::int64_t count = layers()[layer].parameters(), first = first_gradients_[layer];
  if (count > 0)
    tensors = {.parameters = parameters(first, count), .gradients = replica.gradients.flat_slice(first, count)};
  if (!layers()[layer].shared_weights || replica.values.empty()) return tensors;
  const Layer::Gemm& gemm = *layers()[layer].gemm;
  const auto table = std::ranges::find_if(layers(), [](const Layer& one) { return one.embedding.has_value(); });
  const std::int64_t of_table = first_gradients_[static_cast<std::size_t>(table - layers().begin())];
  tensors.shared_parameters = parameters(of_table, gemm.depth * gemm.columns);
  tensors.shared_gradients = replica.gradients.flat_slice(of_table, gemm.depth * gemm.columns);
  return tensors;
}

// Brings parameters just before the first layer that needs them; the preceding layers hide the time.
void LayersWorkload::forward(Replica& replica, const Pass& pass) const {
  StageModel& computation = *replica.computation;
  computation.begin_forward(pass, {});
  if (pass.is_first && model_->has_values()) replica.values.resize(buckets_.size());
  auto next = buckets_.rbegin();
  for (std::size_t i = 0; i < layers().size(); ++i) {
    for (; pass.is_first && next != buckets_.rend() && next->first_layer == i; ++next) {
      const Tensor value = next->parameters->value();
      if (model_->has_values()) replica.values[static_cast<std::size_t>(buckets_.rend() - next) - 1] = value;
    }
    compute_forward(computation, i, pass, tensors(replica, i));
  }
}

void LayersWorkload::backward(Replica& replica, const Pass& pass) {
  std::size_t begun = 0;
  const auto begin_next = [&] {
    const Bucket& bucket = buckets_[begun++];
    updates_.begin({bucket.parameters}, {replica.gradients.flat_slice(bucket.first, bucket.count)});
  };
  replica.computation->begin_backward(pass, {});
  for (std::size_t i = layers().size(); i-- > 0;) {
    layer_backward(replica, pass, i);
    if (!pass.is_last) continue;
    const std::int64_t known = first_gradients_[i] + layers()[i].parameters();
    while (settings_.overlap && begun < buckets_.size() && buckets_[begun].end() <= known) begin_next();
  }
  if (!pass.is_last) return;
  while (begun < buckets_.size()) begin_next();
  replica.values.clear();  // updating a value that is still held would copy it
  updates_.apply([this](Variable& variable, const Tensor& gradient) { update(variable, gradient); });
}

void LayersWorkload::layer_backward(const Replica& replica, const Pass& pass, std::size_t layer) const {
  StageModel& computation = *replica.computation;
  for (const Again& again : recomputation_.before(layer)) {
    compute_again(computation, again, pass, tensors(replica, again.layer));
  }
  const LayerTensors mine = tensors(replica, layer);
  compute_gradients(computation, layers(), layer, pass, mine);
  if (!pass.is_first && layers()[layer].parameters() > 0) computation.launch(Work::accumulation, layer, pass, mine);
}

void LayersWorkload::update(Variable& variable, const Tensor& gradient) const {
  std::vector<Tensor> moments;
  const auto bucket =
      std::ranges::find_if(buckets_, [&](const Bucket& one) { return one.parameters.get() == &variable; });
  for (const auto& moment : bucket->moments) moments.push_back(moment->handle());
  StageModel& computation = *replicas_.front().computation;
  computation.update(variable.handle(), gradient, moments, step_);
  computation.finish_update(gradient.element_count(), gradient);
}

void LayersWorkload::add_to(Checkpoint& checkpoint) {
  for (const Bucket& bucket : buckets_) {
    checkpoint.add(bucket.parameters->name(), bucket.parameters);
    for (const auto& moment : bucket.moments) checkpoint.add(moment->name(), moment);
  }
  losses_.add_to(checkpoint);
}

// Dropout is seeded by the number of steps that a computation has begun.
void LayersWorkload::pass_over(int steps) {
  model_->make_batch(steps, host());
  for (Replica& replica : replicas_) {
    for (int step = 0; step < steps; ++step) replica.computation->begin_step({});
    replica.input->fetch(steps, model_->host_batch(replica.batch, host()));
  }
}

void LayersWorkload::finish(Report& report, bool carries_values) {
  if (!carries_values) return;
  const std::vector<float> losses = losses_.all();
  report.loss.assign(losses.begin(), losses.end());
}

}  // namespace tandem
