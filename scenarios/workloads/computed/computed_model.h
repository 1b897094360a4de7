// A model that is really computed, with its data and its first parameters.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/worker.h"
#include "scenarios/scenario/scenario.h"
#include "scenarios/workloads/computed/computed_settings.h"
#include "scenarios/workloads/computed/flow.h"
#include "scenarios/workloads/computed/training_data.h"
#include "strategies/parallel/layout/division_problem.h"
#include "strategies/parallel/stages/trainable_model.h"

namespace tandem {

// Returns why a table cannot be computed, whatever divides it; nothing where it can.
std::optional<std::string> computation_problem(const LayersSettings& layers);

// Returns why a table that can be computed, and divided, cannot be computed so divided.
std::optional<DivisionProblem> computed_division_problem(const LayersSettings& layers, const ParallelOptions& options);

class ComputedModel final : public TrainableModel {
 public:
  // computation_problem() must have found nothing.
  ComputedModel(Worker& worker, LayersSettings layers, const ComputedSettings& settings,
                std::unique_ptr<TrainingData> data);

  const Model& model() const override { return layers_.model; }
  const TrainingSettings& settings() const override { return layers_; }
  const ComputedSettings& learning() const { return learning_; }
  bool has_values() const override { return true; }
  std::vector<std::unique_ptr<StageModel>> make_stages(Device& device, Device& host,
                                                       std::span<const StagePart> parts) override;
  // Weights of perceptrons are He and others' uniform values; those of other models are uniform with a deviation of
  // 0.02. Norms begin with a scale of 1, everything else with 0.
  FirstValues first_values(std::size_t layer, const StagePart& part) const override;
  void make_batch(int step, Device& host) override;
  Batch host_batch(const BatchPart& part, Device& host) override { return part_of_batch(batch_, part, host); }

 private:
  FirstValues weights(std::size_t layer, const StagePart& part) const;
  FirstValues weight_values(std::size_t layer) const;

  Worker& worker_;
  LayersSettings layers_;
  ComputedSettings learning_;
  std::vector<LayerFlow> flows_;
  std::unique_ptr<TrainingData> data_;
  Batch batch_{};
};

}  // namespace tandem
