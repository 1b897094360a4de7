#include "strategies/parallel/linear.h"

#include <fmt/format.h>

namespace tandem {
namespace {

Op named(Name name, Op op, Category category = Category::compute) {
  op.name = name;
  op.category = category;
  return op;
}

}  // namespace

LinearTensors linear_views(const Tensor& flat, LinearShape shape) {
  return {.weights = flat.view(0, {shape.inputs, shape.outputs}),
          .bias = flat.flat_slice(shape.inputs * shape.outputs, shape.outputs)};
}

void LinearOps::product(const Tensor& output, const Tensor& input, const Tensor& weights) const {
  stream_.launch(named(fmt::format("forward {}", layer_), op::gemm(output, input, weights)));
}

void LinearOps::activate(const Tensor& output, const Tensor& bias, bool with_relu) const {
  stream_.launch(op::add_bias(output, bias));
  if (with_relu) stream_.launch(op::relu(output, output));
}

void LinearOps::parameter_gradients(const LinearTensors& gradients, const Tensor& input, const Tensor& of_output,
                                    bool accumulates, const Tensor& bias_scratch) const {
  stream_.launch(named(fmt::format("weight gradient {}", layer_),
                       op::gemm(gradients.weights, input, of_output, true, false, 1, accumulates ? 1 : 0)));
  if (!accumulates) {
    stream_.launch(op::sum_axis(gradients.bias, of_output, 0));
    return;
  }
  stream_.launch(op::sum_axis(bias_scratch, of_output, 0));
  stream_.launch(named("accumulate", op::scale_add(gradients.bias, bias_scratch, 1, 1)));
}

void LinearOps::input_gradient(const Tensor& of_input, const Tensor& of_output, const Tensor& weights) const {
  stream_.launch(named(fmt::format("input gradient {}", layer_), op::gemm(of_input, of_output, weights, false, true)));
}

void LinearOps::relu_gradient(const Tensor& of_input, const Tensor& input) const {
  stream_.launch(op::relu_gradient(of_input, of_input, input));
}

void launch_sgd(Stream& stream, const Tensor& parameters, const Tensor& velocity, const Tensor& gradients,
                const SgdSettings& sgd) {
  if (velocity) stream.launch(named("momentum", op::scale_add(velocity, gradients, 1, sgd.momentum), Category::update));
  stream.launch(named("sgd", op::scale_add(parameters, velocity ? velocity : gradients, -sgd.learning_rate, 1),
                      Category::update));
}

}  // namespace tandem
