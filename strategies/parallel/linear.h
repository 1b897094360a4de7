// Linear layers as device work: the ops that every kind of parallelism launches for its part of a layer.
//
// A layer's parameters are in one flat f32 tensor: the weights [inputs, outputs] row by row, then the bias [outputs].
// Gradients and velocities have the same form. Matrices are [rows, features], with one row for each example.
#pragma once

#include <cstdint>

#include "engine/device.h"
#include "strategies/parallel/range.h"

namespace tandem {

struct LinearShape {
  std::int64_t inputs = 0, outputs = 0;
  std::int64_t parameters() const { return inputs * outputs + outputs; }
  // For one row.
  double forward_flops() const { return 2.0 * static_cast<double>(inputs) * static_cast<double>(outputs); }
};

struct LinearTensors {
  Tensor weights, bias;
};
LinearTensors linear_views(const Tensor& flat, LinearShape shape);

// SGD with momentum: velocity = gradient + momentum * velocity; parameter -= rate * velocity.
struct SgdSettings {
  double learning_rate = 0.1;
  double momentum = 0;
};

// Launches a layer's ops on one stream. `layer` is part of the ops' names.
class LinearOps {
 public:
  LinearOps(Stream& stream, int layer) : stream_(stream), layer_(layer) {}

  void product(const Tensor& output, const Tensor& input, const Tensor& weights) const;
  void activate(const Tensor& output, const Tensor& bias, bool with_relu) const;
  // With `accumulates` the result is added to the gradients; `bias_scratch` then has the size of the bias.
  void parameter_gradients(const LinearTensors& gradients, const Tensor& input, const Tensor& of_output,
                           bool accumulates, const Tensor& bias_scratch) const;
  void input_gradient(const Tensor& of_input, const Tensor& of_output, const Tensor& weights) const;
  void relu_gradient(const Tensor& of_input, const Tensor& input) const;  // in place

 private:
  Stream& stream_;
  int layer_;
};

// One step of SGD over flat tensors. `velocity` may be empty where there is no momentum.
void launch_sgd(Stream& stream, const Tensor& parameters, const Tensor& velocity, const Tensor& gradients,
                const SgdSettings& sgd);

}  // namespace tandem
