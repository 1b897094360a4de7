#include "strategies/parallel/stages/layer_exchanges.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>

#include "strategies/model/lora.h"

namespace tandem {
namespace {

std::int64_t next_multiple(std::int64_t total, std::int64_t multiple) {
  return (total + multiple - 1) / multiple * multiple;
}

// Returns the elements of rows that go to experts or come back, where all their copies have `elements`. Rows that are
// copied on arrival travel once for each group of devices, or device, that they use.
std::int64_t exchanged_with_experts(std::int64_t elements, const std::optional<Layer::Routing>& routing,
                                    const LayerDivision& division) {
  double copies = 1;
  if (routing && division.experts.dispatch != Dispatch::all_to_all) {
    const int parts = division.expert_groups > 1 ? division.expert_groups : division.expert;
    copies = parts_used(routing->experts, routing->used, parts, division.experts.groups) /
             static_cast<double>(routing->used);
  }
  return next_multiple(std::llround(static_cast<double>(elements) * copies), division.expert);
}

// Returns what surrounds experts, from the layer at `index` on in one direction.
std::optional<Layer::Routing> routing_from(const std::vector<Layer>& layers, std::size_t index, std::ptrdiff_t step) {
  for (auto i = static_cast<std::ptrdiff_t>(index); i >= 0 && i < std::ssize(layers); i += step) {
    const Layer& layer = layers[static_cast<std::size_t>(i)];
    if (layer.routing || !has_experts(layer)) return layer.routing;
  }
  return std::nullopt;
}

// Whether some of the neighbours that read the same input, of which this is the last, have gradients that need it.
bool needs_input_again(std::span<const Layer> layers, std::size_t index) {
  const auto needs = [](const Layer& layer) { return !layer.is_frozen || layer.adapter_rank > 0; };
  while (!needs(layers[index]) && shares_input(layers, index)) --index;
  return needs(layers[index]);
}

}  // namespace

bool has_parameters_before(const std::vector<Layer>& layers, std::size_t index) {
  while (shares_input(layers, index)) --index;
  return std::any_of(layers.begin(), layers.begin() + static_cast<std::ptrdiff_t>(index),
                     [](const Layer& layer) { return layer.parameters() > 0; });
}

std::int64_t LayerExchanges::most() const {
  return std::max({summed_output, summed_gradient, gathered_input, gathered_again, gathered_gradient, keys, queries,
                   results, dispatched, combined});
}

LayerExchanges layer_exchanges(const std::vector<Layer>& layers, std::size_t index, const Layer& part,
                               const LayerDivision& division, std::int64_t examples) {
  LayerExchanges exchanges{.with_input_gradient = has_parameters_before(layers, index)};
  const std::int64_t inputs = part.gemm ? examples * part.gemm->rows * part.gemm->depth : 0;
  const std::int64_t outputs = examples * part.output_elements();
  const int parts = division.parts_of(part);
  if (parts > 1) {
    if (sums_output(part)) exchanges.summed_output = outputs;
    if (exchanges.with_input_gradient && sums_input_gradient(layers, index)) exchanges.summed_gradient = inputs;
    if (divides_loss(part)) exchanges.loss_rows = examples * part.gemm->rows;
  }
  const bool needs_gradient = learns_until(layers, index);
  if (division.divides_rows && sums_output(part) && needs_gradient) exchanges.gathered_gradient = outputs;
  if (division.divides_rows && sums_input_gradient(layers, index)) exchanges.gathered_input = inputs;
  if (division.divides_rows && is_last_by_columns(layers, index) && needs_input_again(layers, index)) {
    exchanges.gathered_again = inputs;
  }
  if (division.context > 1)
    exchanges.keys = next_multiple(examples * passed_key_elements(part, division), division.context);
  if (exchanges.keys > 0 && division.context_exchange == ContextExchange::all_to_all) {
    const std::int64_t rows = examples * part.gemm->count * part.gemm->rows;
    if (part.scores != Layer::Scores::read)
      exchanges.queries = next_multiple(rows * part.gemm->depth, division.context);
    if (part.scores != Layer::Scores::made) {
      exchanges.results = next_multiple(rows * part.gemm->columns, division.context);
    }
  }
  if (division.expert == 1) return exchanges;
  // Parts of whole experts have the device's rows already.
  const bool gathers_rows = division.divides_rows && part.divided_by() != Layer::Split::none;
  const std::int64_t row_parts = gathers_rows ? parts : 1;
  if (dispatches_tokens(layers, index)) {
    exchanges.dispatched = exchanged_with_experts(inputs / row_parts, routing_from(layers, index, -1), division);
  }
  if (combines_tokens(layers, index)) {
    exchanges.combined = exchanged_with_experts(outputs / row_parts, routing_from(layers, index, 1), division);
  }
  return exchanges;
}

}  // namespace tandem
