// A stage whose layers are really computed: its losses and gradients are those of the model.
#pragma once

#include <memory>
#include <vector>

#include "scenarios/workloads/computed/computed_layer.h"
#include "scenarios/workloads/computed/learning_rule.h"

namespace tandem {

class ComputedStage final : public StageModel {
 public:
  ComputedStage(const Model& model, const TrainingSettings& training, const ComputedSettings& settings,
                const std::vector<LayerFlow>& flows, const StagePart& part, Device& device, Device& host);

  void begin_step(const Batch& batch) override;
  Tensor losses() const override { return state_.losses; }
  void begin_forward(const Pass& pass, const Tensor& input) override;
  Tensor output(const Pass& pass) override;
  void begin_backward(const Pass& pass, const Tensor& of_output) override;
  Tensor input_gradient(const Pass& pass) override;
  void launch(Work work, std::size_t layer, const Pass& pass, const LayerTensors& tensors) override;
  Exchanged operands(Exchange exchange, std::size_t layer, const Pass& pass) override;
  int moments() const override { return rule_.moments(); }
  void update(const Tensor& parameters, const Tensor& gradients, std::span<const Tensor> moments,
              std::int64_t step) override;
  void finish_update(std::int64_t /*parameters*/, const Tensor& /*over*/) override {}
  void accumulate(std::int64_t parameters, std::span<const Tensor> sums, std::span<const Tensor> parts) override;

 private:
  void make_layers(Device& host);
  int last() const { return static_cast<int>(state_.part().end) - 1; }
  // Views a matrix of a neighbouring stage as one with as many columns as it has here.
  Tensor as_rows(const Tensor& matrix, int producer, const Pass& pass) const;

  StageState state_;
  LearningRule rule_;
  std::vector<std::unique_ptr<ComputedLayer>> layers_;
};

}  // namespace tandem
