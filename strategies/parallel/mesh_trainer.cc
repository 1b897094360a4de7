#include "strategies/parallel/mesh_trainer.h"

#include <fmt/format.h>

#include "strategies/base/errors.h"
#include "strategies/values/host_values.h"

namespace tandem {
namespace {

std::vector<int> stages_of(const LinearStack& stack, int stages) {
  std::vector<double> costs;
  for (int layer = 0; layer < stack.layers(); ++layer) costs.push_back(stack.shape(layer).forward_flops());
  return divide_into_stages(costs, stages);
}

}  // namespace

void check_interleaving(const ParallelOptions& options) {
  if (options.virtual_stages == 1) return;
  if (options.pipeline == 1) {
    throw ValueError(fmt::format("{} virtual stages of each device need a pipeline of at least two devices",
                                 options.virtual_stages));
  }
  if (options.micro_batches % options.pipeline != 0) {
    throw ValueError(
        fmt::format("with virtual stages, micro-batches go through the {} devices of a pipeline in "
                    "rounds of {}; {} of them do not divide into rounds",
                    options.pipeline, options.pipeline, options.micro_batches));
  }
}

void check_division(const LinearStack& stack, const ParallelOptions& options) {
  check_interleaving(options);
  if (options.batch / options.data < options.micro_batches) {
    throw ValueError(fmt::format("a batch of {} leaves some of {} replicas x {} micro-batches without an example",
                                 options.batch, options.data, options.micro_batches));
  }
  stages_of(stack, options.stages());
  for (int layer = 0; layer < stack.layers(); ++layer) layer_shard(stack, layer, options.tensor, 0);
}

bool sends_whole_matrices(const LinearStack& stack, const ParallelOptions& options) {
  const std::vector<int> first_layers = stages_of(stack, options.stages());
  for (int stage = 1; stage < options.stages(); ++stage) {
    const int layer = first_layers[static_cast<std::size_t>(stage)];
    if (layer_shard(stack, layer, options.tensor, 0).split == Split::columns) return true;
  }
  return false;
}

MeshTrainer::MeshTrainer(Worker& worker, LinearStack stack, const ParallelOptions& options)
    : worker_(worker), stack_(std::move(stack)), options_(options), layout_(worker, options) {
  check_division(stack_, options_);
  const std::vector<int> first_layers = stages_of(stack_, options_.stages());
  for (const MeshSeat& place : layout_.seats()) seats_.push_back(make_seat(place, first_layers));
}

MeshTrainer::Seat MeshTrainer::make_seat(const MeshSeat& place, const std::vector<int>& first_layers) {
  Seat seat{.actions = interleaved_one_forward_one_backward(place.place.pipeline, options_.pipeline,
                                                            options_.virtual_stages, options_.micro_batches)};
  for (int chunk = 0; chunk < options_.virtual_stages; ++chunk) {
    const int stage = chunk * options_.pipeline + place.place.pipeline;
    const auto index = static_cast<std::size_t>(stage);
    const Range layers{.first = first_layers[index], .count = first_layers[index + 1] - first_layers[index]};
    seat.stages.push_back(std::make_unique<MeshStage>(place, worker_.cpu(), stack_, options_, stage, layers,
                                                      live_micro_batches(seat.actions, chunk)));
    seat.chunks.push_back(seat.stages.back().get());
  }
  if (seat.stages.back()->is_last() && place.place.tensor == 0) {
    seat.losses_at = losses_;
    losses_ += options_.micro_batches;
  }
  return seat;
}

Tensor MeshTrainer::train_step(const Tensor& inputs, const Tensor& labels) {
  Tensor losses = worker_.cpu().allocate(DType::f32, {losses_});
  worker_.run_concurrently(static_cast<int>(seats_.size()),
                           [&](int i) { step(seats_[static_cast<std::size_t>(i)], inputs, labels, losses); });
  return losses;
}

void MeshTrainer::step(const Seat& seat, const Tensor& inputs, const Tensor& labels, const Tensor& losses) const {
  for (const auto& stage : seat.stages) stage->fetch(inputs, labels);
  run_passes(seat.actions, seat.chunks);
  for (const auto& stage : seat.stages) stage->update();
  if (seat.losses_at < 0) return;
  const MeshStage& last = *seat.stages.back();
  last.device().compute_stream().copy(losses.slice(seat.losses_at, options_.micro_batches), last.losses(),
                                      Category::other);
}

LinearTensors MeshTrainer::read_layer(int layer) {
  Device& host = worker_.cpu();
  const LinearShape shape = stack_.shape(layer);
  LinearTensors whole = linear_views(host.allocate(DType::f32, {shape.parameters()}), shape);
  for (const Seat& seat : seats_) {
    for (const auto& stage : seat.stages) {
      if (stage->place().data != 0 || !stage->has_layer(layer)) continue;
      const LinearTensors part = stage->parameters(layer);
      const LayerShard& shard = stage->shard(layer);
      const bool by_rows = shard.split == Split::rows;
      const Range range = by_rows ? shard.inputs : shard.outputs;
      host.compute_stream().launch(
          op::place_along(whole.weights, copied_to_host(worker_, part.weights), by_rows ? 0 : 1, range.first));
      host.compute_stream().launch(
          op::place_along(whole.bias, copied_to_host(worker_, part.bias), 0, shard.outputs.first));
    }
  }
  return whole;
}

std::unique_ptr<ParallelTrainer> make_mesh_trainer(Worker& worker, LinearStack stack, const ParallelOptions& options) {
  return std::make_unique<MeshTrainer>(worker, std::move(stack), options);
}

}  // namespace tandem
