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
  for (const MeshMember& place : layout_.members()) steps_.push_back(make_step(place));
}

MeshTraining::DeviceStep MeshTraining::make_step(const MeshMember& place) {
  const std::vector<Layer>& layers = model_.model().layers;
  const bool shares_weights =
      std::any_of(layers.begin(), layers.end(), [](const Layer& layer) { return layer.shared_weights; });
  // Where both ends are on one device, they have one table.
  GroupCollectives* const ends = shares_weights && !options_.ends_meet() ? layout_.ends_of(place) : nullptr;
  DeviceStep local{.actions = division_.schedule(place.place.pipeline, options_), .device = place.device};
  std::vector<StagePart> parts;
  for (int chunk = 0; chunk < options_.chunks(); ++chunk) {
    const auto stage = static_cast<std::size_t>(options_.stage_of(place.place.pipeline, chunk));
    const Range range{.first = static_cast<std::int64_t>(first_layers_[stage]),
                      .count = static_cast<std::int64_t>(first_layers_[stage + 1] - first_layers_[stage])};
    local.stages.push_back(std::make_unique<Stage>(layout_.with_groups_of(place, chunk), model_, options_, range, ends,
                                                   local.actions, chunk));
    local.in_order.push_back(local.stages.back().get());
  }
  std::ranges::sort(local.in_order, {}, &Stage::number);
  if (options_.ends_meet() && model_.has_values()) join_stages(local, shares_weights);
  for (const auto& stage : local.stages) parts.push_back(stage->part());
  std::vector<std::unique_ptr<StageModel>> computations = model_.make_stages(*place.device, worker_.cpu(), parts);
  for (std::size_t i = 0; i < parts.size(); ++i) local.stages[i]->use(std::move(computations[i]), worker_.cpu());
  make_input(local, place.place);
  const Tensor losses = local.in_order.back()->losses();
  if (losses && place.place.tensor == 0) {
    local.losses_at = losses_of_step_;
    losses_of_step_ += losses.element_count();
  }
  return local;
}

// Both ends of a pipeline are on one device, and so are the stages in its middle unless each is on two devices.
void MeshTraining::join_stages(const DeviceStep& local, bool shares_weights) const {
  Stage &first = *local.in_order.front(), &second = *local.in_order.back();
  if (first.number() + 1 == second.number() && options_.ways() == 1) Stage::join(first, second);
  if (shares_weights && first.is_first() && second.is_last()) second.share_table_of(first);
}

void MeshTraining::make_input(DeviceStep& local, const MeshPlace& place) {
  const Range rows = part_of(options_.batch, options_.data, place.data);
  local.batch = {.first = rows.first,
                 .examples = rows.count,
                 .context_parts = options_.context,
                 .context_part = place.context,
                 .has_inputs = local.in_order.front()->is_first(),
                 .has_labels = local.in_order.back()->is_last()};
  const Batch host = model_.host_batch(local.batch, worker_.cpu());
  if (!host.inputs && !host.labels) return;
  local.input.emplace(*local.device, host);
  local.input->fetch(0, host);
}

// The batch of the next step is made here, so that each device can fetch its part while this step computes.
void MeshTraining::run_step(int step) {
  model_.make_batch(step + 1, worker_.cpu());
  Tensor losses;
  if (losses_of_step_ > 0)
    losses_.push_back(losses = worker_.cpu().allocate(model_.settings().storage(), {losses_of_step_}));
  worker_.tasks().run_concurrently(static_cast<int>(steps_.size()),
                                   [&](int i) { this->step(steps_[static_cast<std::size_t>(i)], step, losses); });
}

void MeshTraining::step(DeviceStep& local, int step, const Tensor& losses) {
  Batch batch;
  if (local.input) {
    batch = local.input->arrive(step);
    local.input->fetch(step + 1, model_.host_batch(local.batch, worker_.cpu()));
  }
  for (Stage* const stage : local.in_order) stage->begin_step(batch);
  run_passes(local);
  if (local.input) local.input->release(step);
  for (Stage* const stage : local.in_order) stage->reduce();
  for (Stage* const stage : local.in_order) stage->update();
  if (local.losses_at < 0) return;
  const Tensor mine = local.in_order.back()->losses();
  local.device->compute_stream().copy(losses.slice(local.losses_at, mine.element_count()), mine, Category::other);
}

void MeshTraining::evaluate(int step, int passes) {
  worker_.tasks().run_concurrently(static_cast<int>(steps_.size()), [&](int i) {
    for (int pass = 0; pass < passes; ++pass) evaluate(steps_[static_cast<std::size_t>(i)], step);
  });
  sum_evaluation(worker_);
}

// Does the forward passes of a step, in their order. The input takes the place of that of the last step, since the next
// one may have arrived.
void MeshTraining::evaluate(DeviceStep& local, int step) {
  Batch batch;
  if (local.input) {
    local.input->fetch(step, model_.host_batch(local.batch, worker_.cpu()));
    batch = local.input->arrive(step);
  }
  for (Stage* const stage : local.in_order) stage->begin_evaluation(batch);
  for (const PipelineAction& action : local.actions) {
    if (action.pass != PipelineAction::Pass::forward) continue;
    local.stages[static_cast<std::size_t>(action.chunk)]->evaluate(action);
  }
  if (local.input) local.input->release(step);
}

// Passes that take turns are issued in parts, each until its next exchange with experts.
void MeshTraining::run_passes(DeviceStep& local) {
  const auto stage_of = [&](const PipelineAction& action) -> Stage& {
    return *local.stages[static_cast<std::size_t>(action.chunk)];
  };
  for (std::size_t i = 0; i < local.actions.size(); ++i) {
    const PipelineAction& action = local.actions[i];
    Stage& stage = stage_of(action);
    Stage::Progress progress = stage.begin(action, action.with_next);
    bool has_more = stage.go_on(progress);
    if (!action.with_next) continue;
    const PipelineAction& next = local.actions[++i];
    Stage& other = stage_of(next);
    Stage::Progress beside = other.begin(next, true);
    for (bool other_has_more = true; has_more || other_has_more;) {
      if (other_has_more) other_has_more = other.go_on(beside);
      if (has_more) has_more = stage.go_on(progress);
    }
  }
}

std::int64_t MeshTraining::most_parameters() const {
  std::int64_t most = 0;
  for (const DeviceStep& local : steps_) {
    std::int64_t parameters = 0;
    for (const auto& stage : local.stages) parameters += stage->parameters();
    most = std::max(most, parameters);
  }
  return most;
}

LinearTensors MeshTraining::read_layer(std::size_t layer) {
  Device& host = worker_.cpu();
  const Layer& all = model_.model().layers[layer];
  const LinearShape shape{.inputs = all.gemm->depth, .outputs = all.gemm->columns};
  LinearTensors whole = linear_views(host.allocate(DType::f32, {shape.parameters()}), shape);
  for (const DeviceStep& local : steps_) {
    for (const auto& stage : local.stages) {
      if (local.batch.first == 0) stage->copy_layer(layer, whole, worker_);
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
