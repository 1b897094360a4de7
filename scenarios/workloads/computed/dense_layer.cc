#include "scenarios/workloads/computed/dense_layer.h"

#include <algorithm>

#include "scenarios/workloads/computed/attention.h"
#include "strategies/parallel/layout/range.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

using Operand = QuantisedOperands::Operand;
using Summed = QuantisedOperands::Summed;

OutputPart output_part(const StageState& state, std::size_t layer) {
  const Layer &whole = state.whole(layer), &part = state.layer(layer);
  const LayerDivision& division = state.part().division;
  const bool has_row_parts = division.divides_rows && part.split != Layer::Split::columns;
  const bool is_summed = division.divides_rows && sums_output(part);
  const bool by_columns = part.split == Layer::Split::columns;
  return {
      .rows = part.gemm->rows / (is_summed ? division.tensor : 1),
      .columns = part.gemm->columns,
      .first_column = by_columns ? part_of(whole.gemm->columns, division.tensor, state.part().tensor_part).first : 0,
      .all_columns = whole.gemm->columns,
      .has_row_parts = has_row_parts};
}

}  // namespace

DenseLayer::DenseLayer(StageState& state, std::size_t layer, std::shared_ptr<AttentionTensors> attention)
    : state_(state),
      index_(layer),
      layer_(state.layer(layer)),
      operations_(state, layer, output_part(state, layer)),
      quantised_(state, layer),
      attention_(std::move(attention)),
      forward_(layer_.name),
      of_weights_(layer_.name + " weight gradient"),
      of_input_(layer_.name + " input gradient"),
      of_operations_(state.part()) {
  if (sums()) of_rows_ = state.leave(layer_.gemm->rows, layer_.gemm->columns);
  const bool has_all = state.whole(layer).gemm->depth == layer_.gemm->depth;
  if (has_all || state.flow(layer).input != kNoLayer) return;
  taken_ = state.keep(layer, layer_.gemm->rows, layer_.gemm->depth, state.dtype(), true);
}

// Returns what the layer before gave, of which this device has its rows or its columns.
Tensor DenseLayer::source(const Pass& pass) const {
  const int producer = state_.flow(index_).input;
  if (producer != kNoLayer) return state_.output(producer, pass);
  if (taken_) return taken_.at(pass);
  return state_.model_input(pass, layer_.gemm->rows, state_.whole(index_).gemm->depth);
}

Tensor DenseLayer::input(const Pass& pass) {
  const Tensor part = source(pass);
  return gathers_input() ? state_.all_rows(StageState::Use::input, part) : part;
}

Tensor DenseLayer::weights(const LayerTensors& tensors, bool of_gradients) const {
  const Layer::Gemm& gemm = *layer_.gemm;
  if (layer_.shared_weights) {
    const Tensor& table = of_gradients ? tensors.shared_gradients : tensors.shared_parameters;
    return table.view(0, {gemm.columns, gemm.depth});
  }
  return (of_gradients ? tensors.gradients : tensors.parameters).view(0, {gemm.depth, gemm.columns});
}

// The partial sums of all rows, where each device then gets its rows of the sums.
Tensor DenseLayer::product(const Pass& pass) {
  Tensor result = operations_.product(pass);
  if (!sums()) return result;
  return state_.all_rows(StageState::Use::rows, result);
}

void DenseLayer::launch(Work work, const Pass& pass, const LayerTensors& tensors) {
  switch (work) {
    case Work::product:
      if (taken_) {
        const Tensor all = state_.model_input(pass, layer_.gemm->rows, state_.whole(index_).gemm->depth);
        const auto [division, part] = std::pair(state_.part().division.tensor, state_.part().tensor_part);
        state_.launch(op::take_along(taken_.at(pass), all, 1, part_of(all.shape()[1], division, part).first));
      }
      return multiply(pass, tensors);
    case Work::operations:
      operations_.forward(pass, tensors);
      if (attention_) attention_->divide_heads(index_, operations_.output(pass), pass);
      return;
    case Work::loss_sums:
      return operations_.loss_sums(pass);
    case Work::loss:
      return operations_.divided_loss(pass);
    case Work::operations_gradient:
      return backward(pass, tensors);
    case Work::weight_gradient:
      return weight_gradient(pass, tensors);
    case Work::input_gradient:
      return input_gradient(pass, tensors);
    default:  // accumulation is part of the products
      return;
  }
}

void DenseLayer::multiply(const Pass& pass, const LayerTensors& tensors) {
  const Tensor left = quantised_.rounded(Operand::input, input(pass), Summed::columns);
  const Tensor right = quantised_.rounded(Operand::weights, weights(tensors, false), Summed::rows);
  state_.launch(op::gemm(product(pass), left, right, false, layer_.shared_weights), forward_);
}

void DenseLayer::backward(const Pass& pass, const LayerTensors& tensors) {
  if (attention_) attention_->join_heads(index_, operations_.output(pass), pass);
  of_operations_.set(pass, operations_.backward(pass, tensors));
}

// Returns the gradient of the product, on all rows.
Tensor DenseLayer::of_product(const Pass& pass) {
  if (!sums()) return of_operations_.at(pass);
  return of_rows_ ? of_rows_.at(pass) : state_.all_rows(StageState::Use::of_rows, of_operations_.at(pass));
}

void DenseLayer::weight_gradient(const Pass& pass, const LayerTensors& tensors) {
  const bool is_cleared = layer_.shared_weights && state_.part().has_cleared_table;
  const double before = pass.is_first && !is_cleared ? 0 : 1;
  const Tensor weights = this->weights(tensors, true);
  if (layer_.shared_weights) {
    state_.launch(op::gemm(weights, of_product(pass), input(pass), true, false, 1, before), of_weights_);
  } else {
    const Tensor left = quantised_.rounded(Operand::input, input(pass), Summed::rows);
    const Tensor right = quantised_.rounded(Operand::gradient, of_product(pass), Summed::rows);
    state_.launch(op::gemm(weights, left, right, true, false, 1, before), of_weights_);
  }
  operations_.parameter_gradients(pass, tensors, of_operations_.at(pass));
}

// Layers that share an input add up its gradients.
Tensor DenseLayer::of_input(const Pass& pass) {
  const int producer = state_.flow(index_).input;
  const Tensor part = source(pass);
  return gathers_input() ? state_.all_rows(StageState::Use::of_input, part) : state_.gradient(producer, part);
}

void DenseLayer::input_gradient(const Pass& pass, const LayerTensors& tensors) {
  const int producer = state_.flow(index_).input;
  if (producer == kNoLayer) return;
  const Tensor left = quantised_.rounded(Operand::gradient, of_product(pass), Summed::columns);
  const Tensor right = quantised_.rounded(Operand::weights, weights(tensors, false), Summed::columns);
  state_.launch(
      op::gemm(of_input(pass), left, right, false, !layer_.shared_weights, 1, state_.is_begun(producer) ? 1 : 0),
      of_input_);
  state_.begin_gradient(producer);
}

Exchanged DenseLayer::operands(Exchange exchange, const Pass& pass) {
  const int producer = state_.flow(index_).input;
  switch (exchange) {
    case Exchange::input:
    case Exchange::input_again:
      return {.whole = input(pass), .part = source(pass)};
    case Exchange::output:
      return {.whole = product(pass), .part = sums() ? operations_.product(pass) : Tensor()};
    case Exchange::output_gradient:
      return {.whole = of_product(pass), .part = of_operations_.at(pass)};
    case Exchange::input_gradient:
      return {.whole = of_input(pass), .part = gathers_input() ? state_.gradient(producer, source(pass)) : Tensor()};
    case Exchange::loss_maxima:
    case Exchange::loss_sums:
    case Exchange::loss_targets:
      return operations_.loss_operands(exchange, pass);
    default:
      TANDEM_UNREACHABLE("an exchange that a dense layer lacks");
  }
}

}  // namespace tandem
