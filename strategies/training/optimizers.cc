#include "strategies/training/optimizers.h"

#include <fmt/format.h>

#include <cmath>

#include "engine/device.h"
#include "strategies/base/errors.h"
#include "strategies/variables/components.h"

namespace tandem::optimizers {
namespace {

using kernel::Binary;

void issue(const Tensor& result, Op op) {
  result.device().compute_stream().launch(as_update(std::move(op)));
}

// to = alpha a + beta to
void scale_add(const Tensor& to, const Tensor& a, double alpha, double beta) {
  issue(to, op::scale_add(to, a, alpha, beta));
}

Tensor combined(Binary operation, const Tensor& a, const Tensor& b) {
  Tensor result = a.device().allocate(a.dtype(), a.shape());
  issue(result, op::elementwise(operation, result, a, b));
  return result;
}

Tensor square(const Tensor& a) {
  return combined(Binary::multiply, a, a);
}

// numerator / (sqrt(a + inside) + outside)
Tensor over_root(const Tensor& numerator, const Tensor& a, double inside, double outside) {
  Tensor root = a.device().allocate(a.dtype(), a.shape());
  issue(root, op::square_root(root, a, inside, outside));
  issue(root, op::elementwise(Binary::divide, root, numerator, root));
  return root;
}

double checked_momentum(double momentum) {
  if (!(momentum >= 0 && momentum <= 1))
    throw ValueError(fmt::format("momentum is {}; it must be in [0, 1]", momentum));
  return momentum;
}

}  // namespace

SGD::SGD(SGDOptions options)
    : Optimizer(std::move(options.name), std::move(options.learning_rate), options.clipping),
      momentum_(checked_momentum(options.momentum)),
      nesterov_(options.nesterov) {}

std::vector<Optimizer::SlotSpec> SGD::slots() const {
  if (momentum_ == 0) return {};
  return {{.name = "momentum"}};
}

Optimizer::Sparse SGD::sparse() const {
  return momentum_ == 0 ? Sparse::added : Sparse::by_rows;
}

void SGD::update(const Step& step, const Operands& operands) const {
  if (momentum_ == 0) return scale_add(operands.value, operands.gradient, -step.learning_rate, 1);
  const Tensor& velocity = operands.slots.front();
  scale_add(velocity, operands.gradient, -step.learning_rate, momentum_);
  scale_add(operands.value, velocity, nesterov_ ? momentum_ : 1, 1);
  if (nesterov_) scale_add(operands.value, operands.gradient, -step.learning_rate, 1);
}

Adagrad::Adagrad(AdagradOptions options)
    : Optimizer(std::move(options.name), std::move(options.learning_rate), options.clipping),
      initial_accumulator_value_(options.initial_accumulator_value),
      epsilon_(options.epsilon) {
  if (!(initial_accumulator_value_ >= 0)) {
    throw ValueError(
        fmt::format("initial_accumulator_value is {}; it must not be negative", initial_accumulator_value_));
  }
}

std::vector<Optimizer::SlotSpec> Adagrad::slots() const {
  return {{.name = "accumulator", .initial_value = initial_accumulator_value_}};
}

void Adagrad::update(const Step& step, const Operands& operands) const {
  const Tensor& accumulator = operands.slots.front();
  scale_add(accumulator, square(operands.gradient), 1, 1);
  scale_add(operands.value, over_root(operands.gradient, accumulator, 0, epsilon_), -step.learning_rate, 1);
}

RMSprop::RMSprop(RMSpropOptions options)
    : Optimizer(std::move(options.name), std::move(options.learning_rate), options.clipping),
      rho_(options.rho),
      momentum_(checked_momentum(options.momentum)),
      epsilon_(options.epsilon),
      centered_(options.centered) {}

std::vector<Optimizer::SlotSpec> RMSprop::slots() const {
  std::vector<SlotSpec> slots{{.name = "rms"}};
  if (momentum_ > 0) slots.push_back({.name = "momentum"});
  if (centered_) slots.push_back({.name = "mg"});
  return slots;
}

void RMSprop::update(const Step& step, const Operands& operands) const {
  const Tensor& rms = operands.slots.front();
  scale_add(rms, square(operands.gradient), 1 - rho_, rho_);
  Tensor divisor = rms;
  if (centered_) {
    const Tensor& mean = operands.slots.back();
    scale_add(mean, operands.gradient, 1 - rho_, rho_);
    divisor = combined(Binary::subtract, rms, square(mean));
  }
  if (momentum_ == 0) {
    return scale_add(operands.value, over_root(operands.gradient, divisor, 0, epsilon_), -step.learning_rate, 1);
  }
  const Tensor& velocity = operands.slots[1];
  scale_add(velocity, over_root(operands.gradient, divisor, epsilon_, 0), step.learning_rate, momentum_);
  scale_add(operands.value, velocity, -1, 1);
}

Adam::Adam(AdamOptions options)
    : Optimizer(std::move(options.name), std::move(options.learning_rate), options.clipping),
      beta_1_(options.beta_1),
      beta_2_(options.beta_2),
      epsilon_(options.epsilon),
      amsgrad_(options.amsgrad) {}

std::vector<Optimizer::SlotSpec> Adam::slots() const {
  std::vector<SlotSpec> slots{{.name = "m"}, {.name = "v"}};
  if (amsgrad_) slots.push_back({.name = "vhat"});
  return slots;
}

void Adam::update(const Step& step, const Operands& operands) const {
  const Tensor &m = operands.slots[0], &v = operands.slots[1];
  scale_add(m, operands.gradient, 1 - beta_1_, beta_1_);
  scale_add(v, square(operands.gradient), 1 - beta_2_, beta_2_);
  if (amsgrad_) issue(operands.slots[2], op::elementwise(Binary::maximum, operands.slots[2], operands.slots[2], v));
  const auto t = static_cast<double>(step.number);
  const double rate = step.learning_rate * std::sqrt(1 - std::pow(beta_2_, t)) / (1 - std::pow(beta_1_, t));
  scale_add(operands.value, over_root(m, amsgrad_ ? operands.slots[2] : v, 0, epsilon_), -rate, 1);
}

AdamW::AdamW(AdamWOptions options) : Adam(std::move(options.adam)), weight_decay_(options.weight_decay) {}

void AdamW::update(const Step& step, const Operands& operands) const {
  scale_add(operands.value, operands.value, 1 - step.learning_rate * weight_decay_, 0);
  Adam::update(step, operands);
}

}  // namespace tandem::optimizers
