#include "scenarios/workloads/computed/learning_rule.h"

#include <cmath>

#include "topologies/base/error.h"

namespace tandem {
namespace {

// As in the paper.
constexpr double kFirstDecay = 0.9, kSecondDecay = 0.999, kAdamEpsilon = 1e-8;

void launch_update(const Tensor& parameters, const char* name, Op op) {
  op.name = name;
  op.category = Category::update;
  parameters.device().compute_stream().launch(std::move(op));
}

}  // namespace

void LearningRule::apply(const Tensor& parameters, const Tensor& gradients, std::span<const Tensor> moments,
                         std::int64_t step) const {
  const double rate = settings_.learning_rate;
  switch (optimizer_) {
    case Optimizer::sgd:
      return launch_update(parameters, "sgd", op::scale_add(parameters, gradients, -rate, 1));
    case Optimizer::momentum:
      launch_update(parameters, "momentum", op::scale_add(moments[0], gradients, 1, settings_.momentum));
      return launch_update(parameters, "sgd", op::scale_add(parameters, moments[0], -rate, 1));
    case Optimizer::adam:
      return apply_adam(parameters, gradients, moments, step);
    case Optimizer::lamb:
      break;
  }
  TANDEM_UNREACHABLE("an optimizer that is not computed");
}

// The step is rate / (1 - b1^t) * first / (sqrt(second / (1 - b2^t)) + epsilon), in an order that needs one scratch
// tensor.
void LearningRule::apply_adam(const Tensor& parameters, const Tensor& gradients, std::span<const Tensor> moments,
                              std::int64_t step) const {
  const Tensor &first = moments[0], &second = moments[1];
  const Tensor scratch = parameters.device().allocate(parameters.dtype(), parameters.shape());
  const auto steps = static_cast<double>(step + 1);
  const double first_bias = 1 - std::pow(kFirstDecay, steps), second_bias = 1 - std::pow(kSecondDecay, steps);
  launch_update(parameters, "adam", op::scale_add(first, gradients, 1 - kFirstDecay, kFirstDecay));
  launch_update(parameters, "adam", op::elementwise(kernel::Binary::multiply, scratch, gradients, gradients));
  launch_update(parameters, "adam", op::scale_add(second, scratch, 1 - kSecondDecay, kSecondDecay));
  launch_update(parameters, "adam", op::scale_add(scratch, second, 1 / second_bias, 0));
  launch_update(parameters, "adam", op::square_root(scratch, scratch, 0, kAdamEpsilon));
  launch_update(parameters, "adam", op::elementwise(kernel::Binary::divide, scratch, first, scratch));
  launch_update(parameters, "adam", op::scale_add(parameters, scratch, -settings_.learning_rate / first_bias, 1));
}

}  // namespace tandem
