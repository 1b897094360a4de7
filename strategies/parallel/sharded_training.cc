#include "strategies/parallel/sharded_training.h"

#include <algorithm>

#include "strategies/parallel/layout/range.h"
#include "strategies/parallel/stages/lone_layer.h"
#include "strategies/types/multi_worker_mirrored.h"

namespace tandem {
namespace {

constexpr const char* kDataAxis = "data";

}  // namespace

ShardedTraining::ShardedTraining(Worker& worker, TrainableModel& model, const ParallelOptions& options)
    : worker_(worker),
      model_(model),
      settings_(model.settings()),
      options_(options),
      recomputation_(model.model().layers, settings_.recomputed),
      mesh_(worker, devices_in_sync(worker), {{.name = kDataAxis, .size = options.data}}),
      group_(worker, mesh_.communicator(0, kDataAxis)) {
  divide_into_units();
  const bool shares = std::ranges::any_of(layers(), [](const Layer& layer) { return layer.shared_weights; });
  if (shares && model.has_values()) shared_unit_ = places_[table()].unit;
  model_.make_batch(0, worker_.cpu());
  for (std::size_t i = 0; i < mesh_.local_devices().size(); ++i) replicas_.push_back(make_replica(i));
}

std::size_t ShardedTraining::table() const {
  return static_cast<std::size_t>(
      std::ranges::find_if(layers(), [](const Layer& layer) { return layer.embedding.has_value(); }) -
      layers().begin());
}

// A unit is closed once it holds bucket_bytes; the layers without parameters after it belong to it as well. Layers
// that are really computed again together need their parameters at the same time.
void ShardedTraining::divide_into_units() {
  const auto element_bytes = static_cast<std::int64_t>(size_of(settings_.storage()));
  units_.push_back({});
  for (std::size_t i = 0; i < layers().size(); ++i) {
    const Layer& layer = layers()[i];
    const bool is_with_last = i > 0 && recomputation_.first_of(i) == recomputation_.first_of(i - 1);
    const bool may_close = !(is_with_last && model_.has_values());
    const std::int64_t count = layer.parameters(), frozen = layer.frozen_parameters();
    const std::int64_t known = units_.back().count + units_.back().frozen;
    const bool is_full = count + frozen > 0 && known * element_bytes >= settings_.bucket_bytes;
    if (is_full && may_close) units_.push_back({});
    places_.push_back({.unit = static_cast<int>(units_.size()) - 1, .first = units_.back().count});
    units_.back().count += count;
    units_.back().frozen += frozen;
  }
  if (units_.front().frozen == 0) units_.front().count = std::max<std::int64_t>(1, units_.front().count);
  for (std::size_t unit = 0; unit < units_.size(); ++unit) set_first_values(static_cast<int>(unit));
}

void ShardedTraining::set_first_values(int unit) {
  std::vector<ValuesAt> values;
  for (std::size_t i = 0; i < layers().size(); ++i) {
    if (places_[i].unit != unit || layers()[i].parameters() == 0) continue;
    values.push_back({.first = places_[i].first, .values = model_.first_values(i, part(1))});
  }
  units_[static_cast<std::size_t>(unit)].initial_value = joined(std::move(values));
}

StagePart ShardedTraining::part(std::int64_t examples) const {
  return {.first = 0,
          .end = layers().size(),
          .examples = part_of(examples, settings_.gradient_accumulation_steps, 0).count,
          .passes = settings_.gradient_accumulation_steps,
          .gathers_each_pass = true};
}

ShardedTraining::Replica ShardedTraining::make_replica(std::size_t index) {
  Device& device = *mesh_.local_devices()[index];
  const int rank = mesh_.local_ranks()[index];
  const Range rows = part_of(options_.batch, options_.data, rank);
  Replica replica{.device = &device,
                  .batch = {.first = rows.first, .examples = rows.count, .has_inputs = true, .has_labels = true}};
  const bool adds_passes = model_.has_values() && settings_.gradient_accumulation_steps > 1;
  replica.parameters = std::make_unique<ShardedParameters>(device, worker_.cpu(), group_, rank, units_,
                                                           settings_.storage(), adds_passes, shared_unit_);
  const std::vector<StagePart> parts{part(rows.count)};
  replica.computation = std::move(model_.make_stages(device, worker_.cpu(), parts).front());
  const Batch host = model_.host_batch(replica.batch, worker_.cpu());
  replica.input.emplace(device, host);
  replica.input->fetch(0, host);
  return replica;
}

void ShardedTraining::run_step(int step) {
  model_.make_batch(step + 1, worker_.cpu());
  const Tensor known = replicas_.front().computation->losses();
  const std::int64_t of_one = known ? known.element_count() : 0;
  const auto count = static_cast<std::int64_t>(replicas_.size());
  Tensor losses;
  if (of_one > 0) losses_.push_back(losses = worker_.cpu().allocate(known.dtype(), {count * of_one}));
  worker_.tasks().run_concurrently(static_cast<int>(count), [&](int i) {
    Replica& replica = replicas_[static_cast<std::size_t>(i)];
    this->step(replica, step);
    if (!losses) return;
    replica.device->compute_stream().copy(losses.slice(i * of_one, of_one), replica.computation->losses(),
                                          Category::other);
  });
}

// The input takes the place of that of the last step, since the next one may have arrived.
void ShardedTraining::evaluate(int step, int passes) {
  worker_.tasks().run_concurrently(static_cast<int>(replicas_.size()), [&](int i) {
    Replica& replica = replicas_[static_cast<std::size_t>(i)];
    for (int n = 0; n < passes; ++n) {
      replica.input->fetch(step, model_.host_batch(replica.batch, worker_.cpu()));
      replica.computation->begin_step(replica.input->arrive(step));
      for (int part = 0; part < settings_.gradient_accumulation_steps; ++part) forward(replica, pass(replica, part));
      replica.input->release(step);
    }
  });
  sum_evaluation(worker_);
}

Pass ShardedTraining::pass(const Replica& replica, int index) const {
  const Range mine = part_of(replica.batch.examples, settings_.gradient_accumulation_steps, index);
  return {.index = index,
          .first = replica.batch.first + mine.first,
          .offset = mine.first,
          .examples = mine.count,
          .is_first = index == 0,
          .is_last = index + 1 == settings_.gradient_accumulation_steps};
}

void ShardedTraining::step(Replica& replica, int step) {
  replica.computation->begin_step(replica.input->arrive(step));
  replica.input->fetch(step + 1, model_.host_batch(replica.batch, worker_.cpu()));
  const std::int64_t mine = model_.model().parameters() / options_.data;
  for (int i = 0; i < settings_.gradient_accumulation_steps; ++i) {
    const Pass pass = this->pass(replica, i);
    forward(replica, pass);
    if (pass.is_last) replica.input->release(step);
    backward(replica, pass);
    if (!pass.is_first) replica.parameters->accumulate(*replica.computation, mine);
  }
  replica.parameters->update(*replica.computation);
  replica.computation->finish_update(mine, {});
}

// `gradients` is empty in the forward pass. Shared weights are in a unit that stays whole.
LayerTensors ShardedTraining::tensors(const Replica& replica, std::size_t layer, const Tensor& unit,
                                      const Tensor& gradients) const {
  LayerTensors tensors;
  const std::int64_t count = layers()[layer].parameters();
  const std::int64_t first = places_[layer].first;
  if (count > 0) tensors.parameters = unit.flat_slice(first, count);
  if (count > 0 && gradients) tensors.gradients = gradients.flat_slice(first, count);
  if (!layers()[layer].shared_weights || shared_unit_ < 0) return tensors;
  const Layer::Gemm& gemm = *layers()[layer].gemm;
  const std::int64_t of_table = places_[table()].first, shared = gemm.depth * gemm.columns;
  tensors.shared_parameters = replica.parameters->acquire(shared_unit_).flat_slice(of_table, shared);
  if (gradients) tensors.shared_gradients = replica.parameters->gradients(shared_unit_).flat_slice(of_table, shared);
  return tensors;
}

void ShardedTraining::forward(const Replica& replica, const Pass& pass) const {
  ShardedParameters& parameters = *replica.parameters;
  replica.computation->begin_forward(pass, {});
  Tensor unit;
  for (std::size_t i = 0; i < layers().size(); ++i) {
    const int number = places_[i].unit;
    if (i == 0 || number != places_[i - 1].unit) {
      if (i > 0) parameters.release(number - 1);
      unit = parameters.acquire(number);
      if (settings_.overlap && number + 1 < parameters.units()) parameters.prefetch(number + 1);
    }
    compute_forward(*replica.computation, i, pass, tensors(replica, i, unit, {}));
  }
  parameters.release(parameters.units() - 1);
}

void ShardedTraining::backward(const Replica& replica, const Pass& pass) const {
  ShardedParameters& parameters = *replica.parameters;
  replica.computation->begin_backward(pass, {});
  Tensor unit, gradients;
  for (std::size_t i = layers().size(); i-- > 0;) {
    const int number = places_[i].unit;
    if (i + 1 == layers().size() || number != places_[i + 1].unit) {
      unit = parameters.acquire(number);
      if (settings_.overlap && number > 0) parameters.prefetch(number - 1);
      gradients = parameters.gradients(number);
    }
    layer_backward(replica, pass, i, unit, gradients);
    if (i > 0 && number == places_[i - 1].unit) continue;
    parameters.release(number);
    parameters.reduce_gradients(number, pass.is_first);
  }
}

// The gradients of each pass are reduced by themselves, and then added up.
void ShardedTraining::layer_backward(const Replica& replica, Pass pass, std::size_t layer, const Tensor& unit,
                                     const Tensor& gradients) const {
  pass.is_first = pass.is_last = true;
  for (const Again& again : recomputation_.before(layer)) {
    const bool is_at_hand = places_[again.layer].unit == places_[layer].unit;
    compute_again(*replica.computation, again, pass,
                  is_at_hand ? tensors(replica, again.layer, unit, {}) : LayerTensors());
  }
  compute_gradients(*replica.computation, layers(), layer, pass, tensors(replica, layer, unit, gradients));
}

std::int64_t ShardedTraining::most_parameters() const {
  std::int64_t parameters = 0;
  for (const ShardedParameters::Unit& unit : units_) parameters += part_of(unit.count, options_.data, 0).count;
  return parameters;
}

// Concatenates the pieces of all devices and leaves out the padding.
LinearTensors ShardedTraining::read_layer(std::size_t layer) {
  Device& host = worker_.cpu();
  const auto [unit, first] = places_[layer];
  const std::int64_t piece = replicas_.front().parameters->piece(unit).element_count();
  const Tensor flat = host.allocate(settings_.storage(), {piece * mesh_.device_count()});
  for (std::size_t i = 0; i < replicas_.size(); ++i) {
    host.compute_stream().wait(replicas_[i].device->compute_stream().record());
    host.compute_stream().copy(flat.slice(mesh_.local_ranks()[i] * piece, piece), replicas_[i].parameters->piece(unit),
                               Category::other);
  }
  const Layer::Gemm& gemm = *layers()[layer].gemm;
  return linear_views(flat.flat_slice(first, layers()[layer].parameters()),
                      {.inputs = gemm.depth, .outputs = gemm.columns});
}

}  // namespace tandem
