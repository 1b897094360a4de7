#include "strategies/parallel/mesh_training.h"

#include <algorithm>

#include "strategies/base/errors.h"
#include "strategies/cross_device/host_values.h"

namespace tandem {

MeshTraining::MeshTraining(Worker& worker, TrainableModel& model, const ParallelOptions& options,
                           const MeshDivision& division)
    : worker_(worker),
      model_(model),
      options_(options),
      division_(division),
      layout_(worker, options),
      first_layers_(division.first_layers(model.model(), options)) {
  model_.make_batch(0, worker_.cpu());
  for (const MeshSeat& place : layout_.seats()) seats_.push_back(make_seat(place));
}

MeshTraining::Seat MeshTraining::make_seat(const MeshSeat& place) {
  const std::vector<Layer>& layers = model_.model().layers;
  const bool shares_weights =
      std::any_of(layers.begin(), layers.end(), [](const Layer& layer) { return layer.shared_weights; });
  GroupCollectives* const ends = shares_weights ? layout_.ends_of(place) : nullptr;
  Seat seat{.actions = division_.schedule(place.place.pipeline, options_), .device = place.device};
  std::vector<StagePart> parts;
  for (int chunk = 0; chunk < options_.virtual_stages; ++chunk) {
    const auto stage = static_cast<std::size_t>(chunk * options_.pipeline + place.place.pipeline);
    const Range range{.first = static_cast<std::int64_t>(first_layers_[stage]),
                      .count = static_cast<std::int64_t>(first_layers_[stage + 1] - first_layers_[stage])};
    seat.stages.push_back(std::make_unique<Stage>(place, model_, options_, static_cast<int>(stage), range, ends,
                                                  live_micro_batches(seat.actions, chunk)));
    seat.chunks.push_back(seat.stages.back().get());
    parts.push_back(seat.stages.back()->part());
  }
  std::vector<std::unique_ptr<StageModel>> computations = model_.make_stages(*place.device, worker_.cpu(), parts);
  for (std::size_t i = 0; i < parts.size(); ++i) seat.stages[i]->use(std::move(computations[i]), worker_.cpu());
  make_input(seat, place.place);
  const Tensor losses = seat.stages.back()->losses();
  if (losses && place.place.tensor == 0) {
    seat.losses_at = losses_of_step_;
    losses_of_step_ += losses.element_count();
  }
  return seat;
}

void MeshTraining::make_input(Seat& seat, const MeshPlace& place) {
  const Range rows = part_of(options_.batch, options_.data, place.data);
  seat.batch = {.first = rows.first,
                .examples = rows.count,
                .context_parts = options_.context,
                .context_part = place.context,
                .has_inputs = seat.stages.front()->is_first(),
                .has_labels = seat.stages.back()->is_last()};
  const Batch host = model_.host_batch(seat.batch, worker_.cpu());
  if (!host.inputs && !host.labels) return;
  seat.input.emplace(*seat.device, host);
  seat.input->fetch(0, host);
}

// The batch of the next step is made here, so that each device can fetch its part while this step computes.
void MeshTraining::run_step(int step) {
  model_.make_batch(step + 1, worker_.cpu());
  Tensor losses;
  if (losses_of_step_ > 0)
    losses_.push_back(losses = worker_.cpu().allocate(model_.settings().storage(), {losses_of_step_}));
  worker_.run_concurrently(static_cast<int>(seats_.size()),
                           [&](int i) { this->step(seats_[static_cast<std::size_t>(i)], step, losses); });
}

void MeshTraining::step(Seat& seat, int step, const Tensor& losses) {
  Batch batch;
  if (seat.input) {
    batch = seat.input->arrive(step);
    seat.input->fetch(step + 1, model_.host_batch(seat.batch, worker_.cpu()));
  }
  for (const auto& stage : seat.stages) stage->begin_step(batch);
  run_passes(seat.actions, seat.chunks);
  if (seat.input) seat.input->release(step);
  for (const auto& stage : seat.stages) stage->reduce_tied();
  for (const auto& stage : seat.stages) stage->update();
  if (seat.losses_at < 0) return;
  const Tensor mine = seat.stages.back()->losses();
  seat.device->compute_stream().copy(losses.slice(seat.losses_at, mine.element_count()), mine, Category::other);
}

std::int64_t MeshTraining::most_parameters() const {
  std::int64_t most = 0;
  for (const Seat& seat : seats_) {
    std::int64_t parameters = 0;
    for (const auto& stage : seat.stages) parameters += stage->parameters();
    most = std::max(most, parameters);
  }
  return most;
}

LinearTensors MeshTraining::read_layer(std::size_t layer) {
  Device& host = worker_.cpu();
  const Layer& all = model_.model().layers[layer];
  const LinearShape shape{.inputs = all.gemm->depth, .outputs = all.gemm->columns};
  LinearTensors whole = linear_views(host.allocate(DType::f32, {shape.parameters()}), shape);
  for (const Seat& seat : seats_) {
    for (const auto& stage : seat.stages) {
      if (seat.batch.first == 0) stage->copy_layer(layer, whole, worker_);
    }
  }
  return whole;
}

std::unique_ptr<DividedTraining> MeshDivision::train(Worker& worker, TrainableModel& model,
                                                     const ParallelOptions& options) const {
  if (const auto found = problem({model.model(), model.settings(), options})) throw ValueError(found->message);
  return std::make_unique<MeshTraining>(worker, model, options, *this);
}

}  // namespace tandem
