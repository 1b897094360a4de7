#include "strategies/parallel/stages/layer_exchanges.h"

#include <algorithm>

namespace tandem {
namespace {

std::int64_t next_multiple(std::int64_t total, std::int64_t multiple) {
  return (total + multiple - 1) / multiple * multiple;
}

}  // namespace

bool has_parameters_before(const std::vector<Layer>& layers, std::size_t index) {
  return std::any_of(layers.begin(), layers.begin() + static_cast<std::ptrdiff_t>(index),
                     [](const Layer& layer) { return layer.parameters() > 0; });
}

std::int64_t LayerExchanges::most() const {
  return std::max(
      {summed_output, summed_gradient, gathered_input, gathered_again, gathered_gradient, keys, dispatched, combined});
}

LayerExchanges layer_exchanges(const std::vector<Layer>& layers, std::size_t index, const Layer& part,
                               const LayerDivision& division, std::int64_t examples) {
  LayerExchanges exchanges{.with_input_gradient = has_parameters_before(layers, index)};
  const std::int64_t inputs = part.gemm ? examples * part.gemm->rows * part.gemm->depth : 0;
  const std::int64_t outputs = examples * part.output_elements();
  if (division.tensor > 1) {
    if (sums_output(part)) exchanges.summed_output = outputs;
    if (exchanges.with_input_gradient && sums_input_gradient(layers, index)) exchanges.summed_gradient = inputs;
    if (divides_loss(part)) exchanges.loss_rows = examples * part.gemm->rows;
  }
  if (division.divides_rows && sums_output(part)) exchanges.gathered_gradient = outputs;
  if (division.divides_rows && sums_input_gradient(layers, index)) exchanges.gathered_input = inputs;
  if (division.divides_rows && is_last_by_columns(layers, index)) exchanges.gathered_again = inputs;
  if (division.context > 1) exchanges.keys = next_multiple(examples * key_elements(part), division.context);
  if (division.expert == 1) return exchanges;
  const std::int64_t parts = division.divides_rows ? division.tensor : 1;
  if (dispatches_tokens(layers, index)) exchanges.dispatched = next_multiple(inputs / parts, division.expert);
  if (combines_tokens(layers, index)) exchanges.combined = next_multiple(outputs / parts, division.expert);
  return exchanges;
}

}  // namespace tandem
