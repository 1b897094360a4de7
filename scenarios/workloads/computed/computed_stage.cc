#include "scenarios/workloads/computed/computed_stage.h"

#include <algorithm>

#include "scenarios/workloads/computed/attention.h"
#include "scenarios/workloads/computed/dense_layer.h"
#include "scenarios/workloads/computed/experts.h"
#include "scenarios/workloads/computed/table_layer.h"

namespace tandem {

using Kind = LayerFlow::Kind;

ComputedStage::ComputedStage(const Model& model, const TrainingSettings& training, const ComputedSettings& settings,
                             const std::vector<LayerFlow>& flows, const StagePart& part, Device& device, Device& host)
    : state_(model, training, settings, flows, part, device), rule_(training.optimizer, settings) {
  make_layers(host);
}

// The layers of one attention share its tensors, as do those of one mixture of experts.
void ComputedStage::make_layers(Device& host) {
  std::shared_ptr<AttentionTensors> attention;
  std::shared_ptr<ExpertTensors> experts;
  for (std::size_t i = 0; i < state_.layers(); ++i) {
    switch (state_.flow(i).kind) {
      case Kind::table: {
        bool shares_words = false;
        for (std::size_t other = 0; other < state_.layers(); ++other)
          shares_words |= state_.whole(other).shared_weights;
        layers_.push_back(std::make_unique<TableLayer>(state_, i, shares_words, host));
        break;
      }
      case Kind::projection: {
        std::size_t scores = i;
        while (state_.flow(scores).kind == Kind::projection) ++scores;
        if (!attention) attention = std::make_shared<AttentionTensors>(state_, scores);
        layers_.push_back(std::make_unique<DenseLayer>(state_, i, attention));
        break;
      }
      case Kind::scores:
        layers_.push_back(make_scores_layer(state_, i, attention));
        break;
      case Kind::mixed:
        layers_.push_back(make_mixed_layer(state_, i, std::move(attention)));
        attention = nullptr;
        break;
      case Kind::dispatch:
      case Kind::experts:
      case Kind::combine:
        if (state_.flow(i).kind == Kind::dispatch) experts = std::make_shared<ExpertTensors>(state_, i);
        layers_.push_back(make_expert_layer(state_, i, experts));
        break;
      case Kind::dense:
        layers_.push_back(std::make_unique<DenseLayer>(state_, i, nullptr));
        break;
    }
  }
}

void ComputedStage::begin_step(const Batch& batch) {
  ++state_.step;
  state_.batch = batch;
}

Tensor ComputedStage::as_rows(const Tensor& matrix, int producer, const Pass& pass) const {
  const Layer& layer = state_.model().layers[static_cast<std::size_t>(producer)];
  const Layer part = divided_layer(layer, state_.part().division, state_.part().tensor_part);
  const std::int64_t columns = output_columns(part);
  const bool is_summed = state_.part().division.divides_rows && sums_output(part);
  const std::int64_t elements =
      pass.examples * part.output_elements() / (is_summed ? state_.part().division.parts_of(part) : 1);
  return matrix.view(0, {elements / columns, columns});
}

void ComputedStage::begin_forward(const Pass& pass, const Tensor& input) {
  if (input) state_.set_stage_input(pass, as_rows(input, static_cast<int>(state_.part().first) - 1, pass));
}

Tensor ComputedStage::output(const Pass& pass) {
  return state_.output(last(), pass);
}

void ComputedStage::begin_backward(const Pass& pass, const Tensor& of_output) {
  state_.begin_backward(pass);
  if (!of_output) return;
  const Tensor gradient = as_rows(of_output, last(), pass);
  if (state_.part().owing == 0) return state_.set_gradient(last(), gradient);
  // What came is overwritten before the gradients of weights have read it.
  state_.stream().copy(state_.gradient(last(), gradient), gradient, Category::other);
  state_.begin_gradient(last());
}

Tensor ComputedStage::input_gradient(const Pass& pass) {
  return state_.whole_gradient(kNoLayer, state_.output(kNoLayer, pass));
}

void ComputedStage::launch(Work work, std::size_t layer, const Pass& pass, const LayerTensors& tensors) {
  layers_[layer]->launch(work, pass, tensors);
}

Exchanged ComputedStage::operands(Exchange exchange, std::size_t layer, const Pass& pass) {
  return layers_[layer]->operands(exchange, pass);
}

void ComputedStage::update(const Tensor& parameters, const Tensor& gradients, std::span<const Tensor> moments,
                           std::int64_t step) {
  rule_.apply(parameters, gradients, moments, step);
}

void ComputedStage::accumulate(std::int64_t /*parameters*/, std::span<const Tensor> sums,
                               std::span<const Tensor> parts) {
  for (std::size_t i = 0; i < sums.size(); ++i) {
    state_.launch(op::scale_add(sums[i], parts[i], 1, 1), "accumulate");
  }
}

}  // namespace tandem
