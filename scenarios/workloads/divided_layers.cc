#include "scenarios/workloads/divided_layers.h"

#include <algorithm>

namespace tandem {

DividedLayersWorkload::DividedLayersWorkload(const LayersSettings& settings, Worker& worker,
                                             const ParallelOptions& options)
    : settings_(settings),
      worker_(worker),
      options_(options),
      storage_(settings.dtype == DType::tf32 ? DType::f32 : settings.dtype) {}

void DividedLayersWorkload::prepare() {
  layout_ = std::make_unique<MeshLayout>(worker_, options_);
  for (const MeshSeat& place : layout_->seats()) seats_.push_back(make_seat(place));
}

DividedLayersWorkload::Seat DividedLayersWorkload::make_seat(const MeshSeat& place) {
  const std::vector<Layer>& layers = settings_.model.layers;
  const bool shares_weights =
      std::any_of(layers.begin(), layers.end(), [](const Layer& layer) { return layer.shared_weights; });
  GroupCollectives* const ends = shares_weights ? layout_->ends_of(place) : nullptr;
  Seat seat{.device = place.device,
            .actions = interleaved_one_forward_one_backward(place.place.pipeline, options_.pipeline,
                                                            options_.virtual_stages, options_.micro_batches)};
  for (int chunk = 0; chunk < options_.virtual_stages; ++chunk) {
    const int stage = chunk * options_.pipeline + place.place.pipeline;
    seat.stages.push_back(
        std::make_unique<LayerStage>(place, settings_, options_, stage, ends, live_micro_batches(seat.actions, chunk)));
    seat.chunks.push_back(seat.stages.back().get());
  }
  const StageMemory memory = memory_for(seat);
  for (const auto& stage : seat.stages) stage->use(memory);
  if (place.place.pipeline == 0) make_input(seat);
  return seat;
}

Tensor DividedLayersWorkload::filled(Device& device, std::int64_t count, DType dtype) const {
  Tensor tensor = device.allocate(dtype, {count});
  device.compute_stream().launch(op::fill(tensor, 0));
  return tensor;
}

StageMemory DividedLayersWorkload::memory_for(const Seat& seat) const {
  ScratchSizes sizes;
  std::int64_t exchanged = 1, rows = 1;
  for (const auto& stage : seat.stages) {
    const ScratchSizes mine = scratch_sizes(stage->layers(), stage->examples());
    sizes.left = std::max(sizes.left, mine.left);
    sizes.right = std::max(sizes.right, mine.right);
    sizes.result = std::max(sizes.result, mine.result);
    exchanged = std::max(exchanged, stage->exchanged_elements());
    rows = std::max(rows, stage->loss_rows());
  }
  const bool needs_rows = settings_.sequence_parallel || options_.context > 1 || options_.expert > 1;
  Device& device = *seat.device;
  return {.scratch = {.left = filled(device, sizes.left, storage_),
                      .right = filled(device, sizes.right, storage_),
                      .result = filled(device, sizes.result, storage_)},
          .exchange = {.whole = filled(device, exchanged, storage_),
                       .rows = needs_rows ? filled(device, exchanged, storage_) : Tensor(),
                       .row_sums = filled(device, rows, DType::f32)}};
}

void DividedLayersWorkload::make_input(Seat& seat) const {
  const std::int64_t tokens = (settings_.model.input_elements + options_.context - 1) / options_.context;
  seat.host_input = filled(worker_.cpu(), options_.batch / options_.data * tokens, storage_);
  worker_.cpu().compute_stream().synchronize();
  for (Tensor& input : seat.input) input = filled(*seat.device, seat.host_input.element_count(), storage_);
  fetch_input(seat, 0);
}

// Brings the batch of `step` to the device while the step before it computes.
void DividedLayersWorkload::fetch_input(Seat& seat, int step) const {
  Stream& stream = seat.device->stream(kInputStream);
  stream.wait(seat.input_used[input_slot(step)]);
  stream.copy(seat.input[input_slot(step)], seat.host_input, Category::input);
  seat.input_ready[input_slot(step)] = stream.record();
}

void DividedLayersWorkload::run_step(int step) {
  worker_.run_concurrently(static_cast<int>(seats_.size()),
                           [&](int i) { this->step(seats_[static_cast<std::size_t>(i)], step); });
}

void DividedLayersWorkload::step(Seat& seat, int step) const {
  Stream& compute = seat.device->compute_stream();
  const bool has_input = static_cast<bool>(seat.host_input);
  if (has_input) {
    compute.wait(seat.input_ready[input_slot(step)]);
    fetch_input(seat, step + 1);
  }
  for (const auto& stage : seat.stages) stage->begin_step();
  run_passes(seat.actions, seat.chunks);
  if (has_input) seat.input_used[input_slot(step)] = compute.record();
  for (const auto& stage : seat.stages) stage->reduce_tied();
  for (const auto& stage : seat.stages) stage->update();
}

void DividedLayersWorkload::finish(Report& report, bool /*carries_values*/) {
  std::int64_t most = 0;
  for (const Seat& seat : seats_) {
    std::int64_t parameters = 0;
    for (const auto& stage : seat.stages) parameters += stage->parameters();
    most = std::max(most, parameters);
  }
  report.metrics["parameters_per_device"] = static_cast<double>(most);
}

}  // namespace tandem
