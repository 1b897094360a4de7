#include "scenarios/workloads/computed/table_layer.h"

#include "engine/layer_ops.h"
#include "strategies/cross_device/host_values.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

OutputPart table_output_part(const StageState& state, std::size_t layer) {
  const Layer& part = state.layer(layer);
  const bool divides_rows = state.part().division.divides_rows;
  return {.rows = part.embedding->rows / (divides_rows ? state.part().division.tensor : 1),
          .columns = part.embedding->columns,
          .all_columns = part.embedding->columns,
          .has_row_parts = divides_rows};
}

}  // namespace

TableLayer::TableLayer(StageState& state, std::size_t layer, bool shares_words, Device& host)
    : state_(state),
      index_(layer),
      layer_(state.layer(layer)),
      shares_words_(shares_words),
      operations_(state, layer, table_output_part(state, layer)),
      of_operations_(state.part()),
      forward_(layer_.name),
      backward_(layer_.name + " gradient") {
  const StagePart& part = state.part();
  const LayerFlow& flow = state.flow(layer);
  if (sums_rows()) of_rows_ = state.leave(layer_.embedding->rows, layer_.embedding->columns);
  words_ = part_of(flow.words, part.division.tensor, part.tensor_part);
  if (!flow.has_positions) return;
  positions_ = part_of(state.whole(layer).embedding->entries - flow.words, part.division.tensor, part.tensor_part);
  const std::int64_t rows = layer_.embedding->rows, count = part.examples * rows;
  const auto place = [rows, first = part.context_part * rows](std::int64_t i) {
    return static_cast<double>(first + i % rows);
  };
  places_ = state.device().allocate(DType::i32, {count});
  const Tensor places = host_tensor(host, DType::i32, {count}, place);
  state.stream().wait(host.compute_stream().record());
  state.stream().copy(places_, places, Category::other);
}

Tensor TableLayer::result(const Pass& pass) {
  const Tensor product = operations_.product(pass);
  return sums_rows() ? state_.all_rows(StageState::Use::rows, product) : product;
}

Tensor TableLayer::of_result(const Pass& pass) {
  if (!sums_rows()) return of_operations_.at(pass);
  return of_rows_ ? of_rows_.at(pass) : state_.all_rows(StageState::Use::of_rows, of_operations_.at(pass));
}

Tensor TableLayer::tokens(const Pass& pass) const {
  return state_.batch.inputs.flat_slice(pass.offset * layer_.embedding->rows, pass.examples * layer_.embedding->rows);
}

Tensor TableLayer::places(const Pass& pass) {
  return places_.flat_slice(0, pass.examples * layer_.embedding->rows);
}

Tensor TableLayer::word_rows(const Tensor& table) const {
  return table.view(0, {words_.count, layer_.embedding->columns});
}

Tensor TableLayer::position_rows(const Tensor& table) const {
  return table.view(words_.count * layer_.embedding->columns, {positions_.count, layer_.embedding->columns});
}

void TableLayer::look_up(const Pass& pass, const Tensor& table) {
  const Tensor to = result(pass);
  state_.launch(op::gather_rows(to, word_rows(table), tokens(pass), words_.first), forward_);
  if (positions_.count > 0) {
    state_.launch(op::gather_rows(to, position_rows(table), places(pass), positions_.first, true), forward_);
  }
}

// A layer with the same weights has written the gradients of words before, or they have been cleared.
void TableLayer::add_gradient(const Pass& pass, const Tensor& table) {
  const bool is_begun = shares_words_ || state_.part().has_cleared_table;
  if (pass.is_first && !is_begun) state_.launch(op::fill(word_rows(table), 0));
  state_.launch(op::add_rows(word_rows(table), of_result(pass), tokens(pass), words_.first), backward_);
  if (positions_.count == 0) return;
  if (pass.is_first) state_.launch(op::fill(position_rows(table), 0));
  state_.launch(op::add_rows(position_rows(table), of_result(pass), places(pass), positions_.first), backward_);
}

void TableLayer::launch(Work work, const Pass& pass, const LayerTensors& tensors) {
  switch (work) {
    case Work::product:
      return look_up(pass, tensors.parameters);
    case Work::operations:
      return operations_.forward(pass, tensors);
    case Work::operations_gradient:
      return of_operations_.set(pass, operations_.backward(pass, tensors));
    case Work::weight_gradient:
      add_gradient(pass, tensors.gradients);
      return operations_.parameter_gradients(pass, tensors, of_operations_.at(pass));
    default:
      return;
  }
}

Exchanged TableLayer::operands(Exchange exchange, const Pass& pass) {
  switch (exchange) {
    case Exchange::output:
      return {.whole = result(pass), .part = sums_rows() ? operations_.product(pass) : Tensor()};
    case Exchange::output_gradient:
      return {.whole = of_result(pass), .part = of_operations_.at(pass)};
    default:
      TANDEM_UNREACHABLE("an exchange that an embedding lacks");
  }
}

}  // namespace tandem
