#include "scenarios/workloads/layer_work.h"

#include <algorithm>

namespace tandem {
namespace {

// Returns whether the gradient of the layer's input is needed: nothing learns before the first layer with parameters.
bool has_parameters_before(const std::vector<Layer>& layers, std::size_t index) {
  return std::any_of(layers.begin(), layers.begin() + static_cast<std::ptrdiff_t>(index),
                     [](const Layer& layer) { return layer.parameters() > 0; });
}

std::int64_t next_multiple(std::int64_t total, std::int64_t multiple) {
  return (total + multiple - 1) / multiple * multiple;
}

// With sequence parallelism, what follows a sum is done to the device's rows only.
LayerWork kernels_of(const Layer& part, const LayerDivision& division, const LayerKernels& kernels, bool with_input,
                     std::int64_t examples) {
  LayerWork work;
  if (!division.divides_rows || !sums_output(part)) {
    work.forward = kernels.forward(part);
    work.backward = kernels.backward(part, with_input);
    return work;
  }
  Layer product = part;
  product.then.clear();
  const Layer operations = operations_on_rows(part, division.tensor);
  const auto append = [](std::vector<LayerKernel>& all, const std::vector<LayerKernel>& more) {
    all.insert(all.end(), more.begin(), more.end());
  };
  work.forward = kernels.forward(product);
  append(work.forward, kernels.forward(operations));
  work.backward = kernels.backward(operations, false);
  work.kernels_on_rows = work.backward.size();
  append(work.backward, kernels.backward(product, with_input));
  work.gathered_gradient = examples * part.output_elements();
  return work;
}

}  // namespace

std::int64_t LayerWork::most_exchanged() const {
  return std::max(
      {summed_output, summed_gradient, gathered_input, gathered_again, gathered_gradient, keys, dispatched, combined});
}

LayerWork layer_work(const std::vector<Layer>& layers, std::size_t index, const Layer& part,
                     const LayerDivision& division, const LayerKernels& kernels, std::int64_t examples) {
  const bool with_input = has_parameters_before(layers, index);
  LayerWork work = kernels_of(part, division, kernels, with_input, examples);
  const std::int64_t inputs = part.gemm ? examples * part.gemm->rows * part.gemm->depth : 0;
  const std::int64_t outputs = examples * part.output_elements();
  if (division.tensor > 1) {
    if (sums_output(part)) work.summed_output = outputs;
    if (with_input && sums_input_gradient(layers, index)) work.summed_gradient = inputs;
    if (divides_loss(part)) work.loss_rows = examples * part.gemm->rows;
  }
  if (division.divides_rows && sums_input_gradient(layers, index)) work.gathered_input = inputs;
  if (division.divides_rows && is_last_by_columns(layers, index)) work.gathered_again = inputs;
  if (division.context > 1) work.keys = next_multiple(examples * key_elements(part), division.context);
  if (division.expert == 1) return work;
  const std::int64_t parts = division.divides_rows ? division.tensor : 1;
  if (dispatches_tokens(layers, index)) work.dispatched = next_multiple(inputs / parts, division.expert);
  if (combines_tokens(layers, index)) work.combined = next_multiple(outputs / parts, division.expert);
  return work;
}

}  // namespace tandem
