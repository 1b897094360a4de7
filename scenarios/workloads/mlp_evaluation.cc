#include "scenarios/workloads/mlp_evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "strategies/input/distributed_dataset.h"
#include "strategies/parallel/divided_training.h"

namespace tandem {
namespace {

// Copies `count` elements, from `first` on, to the device; only their sizes where the engine carries no values.
template <typename Element>
Tensor elements_on(Device& device, Device& host, DType dtype, const Shape& shape, const std::vector<Element>& all,
                   std::int64_t first) {
  const Tensor at_host = host.allocate(dtype, shape);
  if (at_host.has_values())
    std::copy_n(all.begin() + first, at_host.element_count(), at_host.values<Element>().begin());
  Tensor there = device.allocate(dtype, shape);
  device.compute_stream().copy(there, at_host, Category::input);
  return there;
}

}  // namespace

std::vector<Tensor> mlp_forward(Device& device, std::span<const MlpParameters> parameters, const Tensor& inputs) {
  Stream& stream = device.compute_stream();
  std::vector<Tensor> activations = {inputs};
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Tensor output = device.allocate(DType::f32, {inputs.shape()[0], parameters[i].weights.shape()[1]});
    Op product = op::gemm(output, activations.back(), parameters[i].weights);
    product.name = Name(fmt::format("forward {}", i));
    stream.launch(std::move(product));
    stream.launch(op::add_bias(output, parameters[i].bias));
    if (i + 1 < parameters.size()) stream.launch(op::relu(output, output));
    activations.push_back(output);
  }
  return activations;
}

MlpEvaluation::Rows MlpEvaluation::rows_on(Device& device, Device& host, std::int64_t first, std::int64_t count) const {
  const std::int64_t columns = rows_.columns;
  return {.values = elements_on(device, host, DType::f32, {count, columns}, rows_.values, first * columns),
          .labels = elements_on(device, host, DType::i32, {count}, rows_.labels, first)};
}

Tensor MlpEvaluation::run(Device& device, Device& host, std::span<const MlpParameters> parameters, int part,
                          int parts) const {
  Stream& stream = device.compute_stream();
  Tensor sums = device.allocate(DType::f32, {kEvaluationSums});
  stream.launch(op::fill(sums, 0));
  for (int pass = 0; pass < settings_.passes; ++pass) {
    const std::int64_t begin = std::int64_t{pass} * settings_.batch;
    const std::int64_t count = std::min<std::int64_t>(settings_.batch, rows_.rows() - begin);
    if (count <= 0) break;
    const std::vector<std::int64_t> shares = rebatch(count, parts);
    const std::int64_t mine = shares[static_cast<std::size_t>(part)];
    if (mine == 0) continue;
    const Rows rows = rows_on(device, host, std::accumulate(shares.begin(), shares.begin() + part, begin), mine);
    const Tensor loss = device.allocate(DType::f32, {1}), correct = device.allocate(DType::f32, {1});
    stream.launch(op::softmax_cross_entropy({.loss = loss,
                                             .gradient = {},
                                             .correct = correct,
                                             .logits = mlp_forward(device, parameters, rows.values).back(),
                                             .labels = rows.labels}));
    stream.launch(op::scale_add(sums.flat_slice(0, 1), loss, 1, 1));
    stream.launch(op::scale_add(sums.flat_slice(1, 1), correct, 1, 1));
  }
  return sums;
}

std::int64_t MlpEvaluation::examples() const {
  return std::min<std::int64_t>(std::int64_t{settings_.passes} * settings_.batch, rows_.rows());
}

}  // namespace tandem
