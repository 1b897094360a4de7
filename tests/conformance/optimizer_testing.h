// What the tests of optimizers share: one of each kind, strategies to train under, and something to learn.
#pragma once

#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <memory>

#include "strategies/cross_device/host_values.h"
#include "strategies/strategy/context.h"
#include "strategies/training/optimizers.h"
#include "strategies/types/mirrored.h"
#include "strategies/types/one_device.h"
#include "tests/conformance/each_strategy.h"

namespace tandem::optimizer_testing {
using optimizers::Optimizer;

using MakeOptimizer = std::function<std::unique_ptr<Optimizer>()>;
using Numbers = std::vector<double>;

template <typename Kind, typename Options>
MakeOptimizer making(Options options) {
  return [options] { return std::make_unique<Kind>(options); };
}

// Each kind of optimizer, with every part of its formula in use.
inline std::map<std::string, MakeOptimizer> every_optimizer() {
  using namespace optimizers;
  return {
      {"sgd", making<SGD>(SGDOptions{.learning_rate = 0.125})},
      {"momentum", making<SGD>(SGDOptions{.learning_rate = 0.125, .momentum = 0.5})},
      {"nesterov", making<SGD>(SGDOptions{.learning_rate = 0.125, .momentum = 0.5, .nesterov = true})},
      {"adagrad", making<Adagrad>(AdagradOptions{.learning_rate = 0.125})},
      {"rmsprop", making<RMSprop>(RMSpropOptions{.learning_rate = 0.125})},
      {"rmsprop_centered", making<RMSprop>(RMSpropOptions{.learning_rate = 0.125, .centered = true})},
      {"rmsprop_momentum", making<RMSprop>(RMSpropOptions{.learning_rate = 0.125, .momentum = 0.5, .centered = true})},
      {"adam", making<Adam>(AdamOptions{.learning_rate = 0.125})},
      {"amsgrad", making<Adam>(AdamOptions{.learning_rate = 0.125, .amsgrad = true})},
      {"adamw", making<AdamW>(AdamWOptions{.weight_decay = 0.25, .adam = {.learning_rate = 0.125}})}};
}

inline std::shared_ptr<Variable> weights(Strategy& strategy, const std::string& name, Shape shape, double initial = 1) {
  return strategy.create_variable({.name = name, .shape = shape, .initial_value = [initial](std::int64_t i) {
                                     return initial + static_cast<double>(i);
                                   }});
}

inline Value gradient_of(Numbers values) {
  return constant(get_replica_context()->device(), std::move(values));
}

// Every replica's share of a gradient that is summed.
inline Numbers shared_out(Numbers values) {
  for (double& value : values) value /= get_replica_context()->num_replicas_in_sync();
  return values;
}

inline void step(Strategy& strategy, Optimizer& optimizer, const std::shared_ptr<Variable>& w,
                 const Numbers& gradient) {
  strategy.run([&](const Value::Parts&) -> Value {
    optimizer.apply_gradients({{gradient_of(shared_out(gradient)), w}});
    return {};
  });
}

inline std::vector<Numbers> component_numbers(Worker& worker, const Variable& variable) {
  std::vector<Numbers> values;
  for (const Tensor& component : variable.components()) values.push_back(host_values(worker, component));
  return values;
}

// Eight examples of a linear model, in whole numbers.
inline constexpr int kExamples = 8, kSteps = 6;
inline double x_of(int example, int feature) {
  return (example * 3 + feature * 5) % 7 - 3;
}
inline double y_of(int example) {
  return 2 * x_of(example, 0) - x_of(example, 1) + 1;
}

// Half of the mean squared error's gradient over a replica's examples, and in `loss` their part of the error.
inline Numbers linear_gradient(const Numbers& w, int replica, int replicas, double& loss) {
  Numbers gradient(3);
  for (int example = replica; example < kExamples; example += replicas) {
    const double error = w[0] * x_of(example, 0) + w[1] * x_of(example, 1) + w[2] - y_of(example);
    loss += error * error / kExamples;
    for (int feature = 0; feature < 3; ++feature) {
      gradient[static_cast<std::size_t>(feature)] += error * (feature < 2 ? x_of(example, feature) : 1) / kExamples;
    }
  }
  return gradient;
}

// The losses before each step, and the weights in the end.
inline Numbers trained(Worker& worker, Strategy& strategy, Optimizer& optimizer, const std::string& name) {
  const auto w = strategy.create_variable({.name = name, .shape = {3}});
  Numbers result;
  for (int i = 0; i < kSteps; ++i) {
    double loss = 0;
    strategy.run([&](const Value::Parts&) -> Value {
      const Numbers now = host_values(worker, w->value());
      const int replicas = strategy.num_replicas_in_sync();
      optimizer.apply_gradients({{gradient_of(linear_gradient(now, replica_id(), replicas, loss)), w}});
      return {};
    });
    result.push_back(strategy.extended().implementation().reduce_number(ReduceOp::sum, Value(loss)).number());
  }
  const Numbers end = host_values(worker, w->read());
  result.insert(result.end(), end.begin(), end.end());
  return result;
}

// Gradients are sums of other parts, each rounded to f32: they differ by some units of 2^-24 in the largest summands,
// about 10. Adam's quotient of small gradients does not enlarge that here, where they stay above 0.01.
inline constexpr double kRounding = 2e-5;

MATCHER_P(IsNearTo, tolerance, "") {
  return std::abs(std::get<0>(arg) - std::get<1>(arg)) <= tolerance * std::max(1.0, std::abs(std::get<1>(arg)));
}

// Slices of a variable of four rows of two: row 2 twice, and row 0. What one replica does not have, the other has.
inline IndexedSlices slices(double first, double second, double third) {
  Device& device = get_replica_context()->device();
  const double share = get_replica_context()->num_replicas_in_sync();
  return {constant(device, {first / share, first / share, second / share, second / share, third / share, third / share},
                   Shape{3, 2}),
          constant(device, {2, 0, 2}, Shape{3}, DType::i64), Shape{4, 2}};
}

// The same gradient as a tensor.
inline Numbers whole(double first, double second, double third) {
  return {second, second, 0, 0, first + third, first + third, 0, 0};
}

}  // namespace tandem::optimizer_testing
