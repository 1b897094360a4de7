// A dense layer: output = input * weights, and what follows it. Its output may become queries, keys and values.
#pragma once

#include <memory>

#include "scenarios/workloads/computed/computed_layer.h"
#include "scenarios/workloads/computed/operations.h"
#include "scenarios/workloads/computed/quantised_operands.h"

namespace tandem {

class AttentionTensors;

class DenseLayer final : public ComputedLayer {
 public:
  // `attention` is that of a projection, else null.
  DenseLayer(StageState& state, std::size_t layer, std::shared_ptr<AttentionTensors> attention);

  void launch(Work work, const Pass& pass, const LayerTensors& tensors) override;
  Exchanged operands(Exchange exchange, const Pass& pass) override;

 private:
  bool divides_rows() const { return state_.part().division.divides_rows; }
  bool is_by_columns() const { return layer_.split == Layer::Split::columns; }
  bool gathers_input() const { return divides_rows() && is_by_columns(); }
  bool sums() const { return divides_rows() && sums_output(layer_); }
  Tensor source(const Pass& pass) const;
  Tensor input(const Pass& pass);
  Tensor weights(const LayerTensors& tensors, bool of_gradients) const;
  Tensor product(const Pass& pass);
  Tensor of_product(const Pass& pass);
  Tensor of_input(const Pass& pass);
  void multiply(const Pass& pass, const LayerTensors& tensors);
  void backward(const Pass& pass, const LayerTensors& tensors);
  void weight_gradient(const Pass& pass, const LayerTensors& tensors);
  void input_gradient(const Pass& pass, const LayerTensors& tensors);

  StageState& state_;
  std::size_t index_;
  Layer layer_;  // the device's part
  Operations operations_;
  QuantisedOperands quantised_;
  std::shared_ptr<AttentionTensors> attention_;
  Name forward_, of_weights_, of_input_;
  Kept taken_{};                // its features of the model's input, where it has some of them only
  LeftGradient of_operations_;  // the gradient before it is gathered
  Kept of_rows_{};              // the same of all rows, where gradients of weights may read it later
};

}  // namespace tandem
