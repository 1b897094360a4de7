// An embedding: a row of a table for each token and, where the table has rows for positions, one for its place.
//
// Tensor-parallel devices divide the rows of words and those of positions; the sum over them is the whole output.
#pragma once

#include "scenarios/workloads/computed/computed_layer.h"
#include "scenarios/workloads/computed/operations.h"
#include "strategies/parallel/layout/range.h"

namespace tandem {

class TableLayer final : public ComputedLayer {
 public:
  // `shares_words`: whether a layer of this stage has the rows of words as its weights, and begins their
  // gradient. `host`: the worker's CPU.
  TableLayer(StageState& state, std::size_t layer, bool shares_words, Device& host);

  void launch(Work work, const Pass& pass, const LayerTensors& tensors) override;
  Exchanged operands(Exchange exchange, const Pass& pass) override;

 private:
  bool sums_rows() const { return state_.part().division.divides_rows; }
  Tensor result(const Pass& pass);
  Tensor of_result(const Pass& pass);
  Tensor tokens(const Pass& pass) const;
  Tensor places(const Pass& pass);
  Tensor word_rows(const Tensor& table) const;
  Tensor position_rows(const Tensor& table) const;
  void look_up(const Pass& pass, const Tensor& table);
  void add_gradient(const Pass& pass, const Tensor& table);

  StageState& state_;
  std::size_t index_;
  Layer layer_;
  bool shares_words_;
  Range words_, positions_;  // the device's rows of each kind
  Operations operations_;
  Tensor places_{};  // of the tokens of the largest pass
  LeftGradient of_operations_;
  Kept of_rows_{};  // of all rows, where gradients of weights may read them later
  Name forward_, backward_;
};

}  // namespace tandem
