#include "scenarios/workloads/trainable.h"

#include "scenarios/workloads/computed/computed_model.h"
#include "scenarios/workloads/mlp_layers.h"
#include "scenarios/workloads/scratch_model.h"

namespace tandem {
namespace {

std::unique_ptr<TrainableModel> computed_rows(const MlpSettings& mlp, std::int64_t batch, Worker& worker) {
  const ComputedSettings learning{
      .learning_rate = mlp.learning_rate, .momentum = mlp.momentum, .seed = mlp.seed, .batch = batch};
  return std::make_unique<ComputedModel>(worker, layers_of(mlp), learning,
                                         rows_data(split_rows(*mlp.rows).train, batch, mlp.seed));
}

std::unique_ptr<TrainableModel> computed_text(const LayersSettings& layers, std::int64_t batch, Worker& worker) {
  const LearningSettings& learning = *layers.learning;
  return std::make_unique<ComputedModel>(worker, layers,
                                         ComputedSettings{.learning_rate = learning.learning_rate,
                                                          .momentum = learning.momentum,
                                                          .dropout = learning.dropout,
                                                          .seed = learning.seed,
                                                          .batch = batch},
                                         text_data(learning.text, batch, layers.model.input_elements, learning.seed));
}

}  // namespace

std::unique_ptr<TrainableModel> trainable_model(const WorkloadSettings& workload, Worker& worker) {
  if (const auto* mlp = std::get_if<MlpSettings>(&workload.kind)) return computed_rows(*mlp, workload.batch, worker);
  const auto& layers = std::get<LayersSettings>(workload.kind);
  if (layers.learning) return computed_text(layers, workload.batch, worker);
  const Capabilities& engine = worker.capabilities();
  return std::make_unique<ScratchModel>(layers, engine.carries_values && !engine.deterministic);
}

}  // namespace tandem
