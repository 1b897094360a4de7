#include "scenarios/workloads/workload.h"

#include <numeric>

#include "strategies/base/errors.h"
#include "strategies/strategy/default_strategy.h"
#include "strategies/variables/checkpoint.h"

namespace tandem {

float sum_of_elements(const Tensor& tensor) {
  if (tensor.dtype() == DType::f32) {
    const std::span<const float> values = tensor.values<float>();
    return std::accumulate(values.begin(), values.end(), 0.0F);
  }
  const std::span<const double> values = tensor.values<double>();
  return static_cast<float>(std::accumulate(values.begin(), values.end(), 0.0));
}

Tensor Workload::evaluate() {
  throw NotImplementedError("the workload has nothing to evaluate");
}

std::vector<Tensor> Workload::variables() {
  throw NotImplementedError("the workload has no variables for an evaluator");
}

void Workload::add_to(Checkpoint& /*checkpoint*/) {
  throw NotImplementedError("no checkpoint has all that this workload's later steps depend on");
}

std::vector<float> StepLosses::all() const {
  std::vector<float> losses = earlier_;
  for (const Tensor& parts : parts_) losses.push_back(of_(parts));
  return losses;
}

void StepLosses::add_to(Checkpoint& checkpoint) {
  const auto saved = [this, &checkpoint] {
    const std::vector<float> losses = all();
    const Tensor tensor = checkpoint.worker().cpu().allocate(DType::f32, {static_cast<std::int64_t>(losses.size())});
    if (tensor.has_values()) std::ranges::copy(losses, tensor.values<float>().begin());
    return tensor;
  };
  const auto restore = [this](const Tensor& tensor) {
    const std::span<const float> losses = tensor.values<float>();
    earlier_.assign(losses.begin(), losses.end());
    parts_.clear();
  };
  checkpoint.add("run/losses", Checkpoint::Saveable{.dtype = DType::f32,
                                                    .shape = {},
                                                    .strategy = &default_strategy(),
                                                    .saved = saved,
                                                    .restore = restore,
                                                    .has_any_shape = true});
}

}  // namespace tandem
