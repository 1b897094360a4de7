// Updates of parameters that are flat tensors: SGD, with momentum, and Adam (Kingma and Ba, arXiv:1412.6980).
#pragma once

#include <span>

#include "engine/device.h"
#include "scenarios/workloads/computed/computed_settings.h"
#include "strategies/model/training_settings.h"

namespace tandem {

class LearningRule {
 public:
  LearningRule(Optimizer optimizer, const ComputedSettings& settings) : optimizer_(optimizer), settings_(settings) {}

  int moments() const { return optimizer_ == Optimizer::sgd ? 0 : optimizer_ == Optimizer::momentum ? 1 : 2; }
  // Launches an update on the compute stream of the parameters' device. `moments`: as many tensors as moments(), of the
  // parameters' size. Steps count from 0.
  void apply(const Tensor& parameters, const Tensor& gradients, std::span<const Tensor> moments,
             std::int64_t step) const;

 private:
  void apply_adam(const Tensor& parameters, const Tensor& gradients, std::span<const Tensor> moments,
                  std::int64_t step) const;

  Optimizer optimizer_;
  ComputedSettings settings_;
};

}  // namespace tandem
