#include "scenarios/workloads/workload.h"

#include <numeric>

#include "strategies/base/errors.h"

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

void train_steps(Workload& workload, Worker& worker, int steps,
                 const std::function<void(int step, int steps)>& progress, Report& report, BetweenSteps* between) {
  workload.prepare();
  for (Device* device : worker.devices()) device->synchronize();
  if (between != nullptr) between->begin();
  for (int step = 0; step < steps; ++step) {
    worker.begin_step(step);
    workload.run_step(step);
    worker.end_step();
    if (progress && worker.index() == 0) progress(step + 1, steps);
    if (between != nullptr) between->step_done(step + 1);
  }
  workload.finish(report, worker.capabilities().carries_values);
  report.throughput_unit = workload.throughput_unit();
}

}  // namespace tandem
