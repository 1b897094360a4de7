#include "strategies/parallel/mesh_trainer.h"

#include <fmt/format.h>

#include "strategies/base/errors.h"
#include "strategies/multi_worker_mirrored.h"
#include "strategies/values/host_values.h"

namespace tandem {
namespace {

constexpr const char* kData = "data";
constexpr const char* kTensor = "tensor";
constexpr const char* kPipeline = "pipeline";

std::vector<MeshAxis> axes_of(const ParallelOptions& options) {
  return {{.name = kPipeline, .size = options.pipeline},
          {.name = kData, .size = options.data},
          {.name = kTensor, .size = options.tensor}};
}

std::vector<int> stages_of(const LinearStack& stack, int stages) {
  std::vector<double> costs;
  for (int layer = 0; layer < stack.layers(); ++layer) costs.push_back(stack.shape(layer).forward_flops());
  return divide_into_stages(costs, stages);
}

}  // namespace

void check_division(const LinearStack& stack, const ParallelOptions& options) {
  if (options.batch / options.data < options.micro_batches) {
    throw ValueError(fmt::format("a batch of {} leaves some of {} replicas x {} micro-batches without an example",
                                 options.batch, options.data, options.micro_batches));
  }
  stages_of(stack, options.pipeline);
  for (int layer = 0; layer < stack.layers(); ++layer) layer_shard(stack, layer, options.tensor, 0);
}

MeshTrainer::MeshTrainer(Worker& worker, LinearStack stack, const ParallelOptions& options)
    : worker_(worker),
      stack_(std::move(stack)),
      options_(options),
      mesh_(worker, devices_in_sync(worker), axes_of(options)) {
  check_division(stack_, options_);
  make_stages();
}

GroupCollectives& MeshTrainer::group(int rank, const char* axis) {
  Communicator& communicator = mesh_.communicator(rank, axis);
  std::unique_ptr<GroupCollectives>& group = groups_[&communicator];
  if (!group) group = std::make_unique<GroupCollectives>(worker_, communicator);
  return *group;
}

void MeshTrainer::make_stages() {
  const std::vector<int> first = stages_of(stack_, options_.pipeline);
  for (std::size_t i = 0; i < mesh_.local_devices().size(); ++i) {
    const int rank = mesh_.local_ranks()[i];
    const MeshPlace place{.data = mesh_.coordinate(rank, kData),
                          .tensor = mesh_.coordinate(rank, kTensor),
                          .stage = mesh_.coordinate(rank, kPipeline)};
    const MeshGroups groups{
        .data = &group(rank, kData), .tensor = &group(rank, kTensor), .pipeline = &mesh_.communicator(rank, kPipeline)};
    const auto stage = static_cast<std::size_t>(place.stage);
    const Range layers{.first = first[stage], .count = first[stage + 1] - first[stage]};
    stages_.push_back(
        std::make_unique<MeshStage>(*mesh_.local_devices()[i], worker_.cpu(), stack_, options_, place, groups, layers));
    const bool has_loss = stages_.back()->is_last() && place.tensor == 0;
    loss_at_.push_back(has_loss ? losses_ : -1);
    if (has_loss) losses_ += options_.micro_batches;
  }
}

Tensor MeshTrainer::train_step(const Tensor& inputs, const Tensor& labels) {
  Tensor losses = worker_.cpu().allocate(DType::f32, {losses_});
  worker_.run_concurrently(static_cast<int>(stages_.size()), [&](int i) {
    MeshStage& stage = *stages_[static_cast<std::size_t>(i)];
    stage.step(inputs, labels);
    const std::int64_t first = loss_at_[static_cast<std::size_t>(i)];
    if (first < 0) return;
    stage.device().compute_stream().copy(losses.slice(first, options_.micro_batches), stage.losses(), Category::other);
  });
  return losses;
}

LinearTensors MeshTrainer::read_layer(int layer) {
  Device& host = worker_.cpu();
  const LinearShape shape = stack_.shape(layer);
  LinearTensors whole = linear_views(host.allocate(DType::f32, {shape.parameters()}), shape);
  for (const auto& stage : stages_) {
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
  return whole;
}

std::unique_ptr<ParallelTrainer> make_mesh_trainer(Worker& worker, LinearStack stack, const ParallelOptions& options) {
  return std::make_unique<MeshTrainer>(worker, std::move(stack), options);
}

}  // namespace tandem
