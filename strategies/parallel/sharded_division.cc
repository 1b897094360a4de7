#include "strategies/parallel/sharded_division.h"

#include "strategies/parallel/layout/range.h"

#include <fmt/format.h>

#include "strategies/base/errors.h"
#include "strategies/parallel/layout/gradient_buckets.h"
#include "strategies/parallel/sharded_training.h"

namespace tandem {

std::optional<DivisionProblem> ShardedDivision::problem(const DivisionRequest& request) const {
  if (request.settings.parameter_dtype) {
    return DivisionProblem{"workload.parameter_dtype", "pieces of parameters are kept in the workload's dtype"};
  }
  if (request.settings.offload.any()) {
    return DivisionProblem{"workload.offload",
                           "is for strategies that divide models in a mesh; strategy mesh with "
                           "shard_parameters: true keeps pieces of parameters, too"};
  }
  if (request.options.batch < request.options.data) {
    return DivisionProblem{"strategy",
                           fmt::format("a batch of {} leaves some of {} replicas x {} micro-batches without "
                                       "an example",
                                       request.options.batch, request.options.data, 1)};
  }
  return std::nullopt;
}

namespace {

// Two units of parameters and two of gradients exist as a whole at a time: see ShardedParameters.
std::int64_t gathered_together(const Model& model, std::int64_t bucket_bytes, std::int64_t element_bytes) {
  constexpr std::int64_t kUnits = 2;
  if (model.frozen_parameters() == 0) return 2 * kUnits * largest_bucket(model.layers, bucket_bytes, element_bytes);
  std::vector<Layer> all = model.layers;
  for (Layer& layer : all) layer.tensors.insert(layer.tensors.end(), layer.frozen.begin(), layer.frozen.end());
  return kUnits * largest_bucket(all, bucket_bytes, element_bytes);
}

}  // namespace

std::vector<DeviceShare> ShardedDivision::shares(const DivisionRequest& request) const {
  const auto& [model, settings, options] = request;
  const std::int64_t examples = part_of(options.batch, options.data, 0).count;
  const auto element_bytes = static_cast<std::int64_t>(size_of(settings.storage()));
  std::vector<PipelineAction> actions;
  for (int i = 0; i < settings.gradient_accumulation_steps; ++i) {
    actions.push_back({PipelineAction::Pass::forward, i});
    actions.push_back({PipelineAction::Pass::backward, i});
  }
  return {{.stages = {{.layers = model.layers}},
           .actions = std::move(actions),
           .parameters = {{.count = model.parameters(), .parts = options.data}},
           .examples = part_of(examples, settings.gradient_accumulation_steps, 0).count,
           .input = examples * model.input_elements,
           .reduced_together = gathered_together(model, settings.bucket_bytes, element_bytes)}};
}

std::vector<std::int64_t> ShardedDivision::kind_of(int rank, const ParallelOptions& options) const {
  return {part_of(options.batch, options.data, rank).count};
}

int ShardedDivision::alike_neighbours(const DivisionRequest& request) const {
  return request.options.batch % request.options.data == 0 ? request.options.data : 1;
}

std::unique_ptr<DividedTraining> ShardedDivision::train(Worker& worker, TrainableModel& model,
                                                        const ParallelOptions& options) const {
  if (const auto found = problem({model.model(), model.settings(), options})) throw ValueError(found->message);
  return std::make_unique<ShardedTraining>(worker, model, options);
}

}  // namespace tandem
