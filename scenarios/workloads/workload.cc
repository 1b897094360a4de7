#include "scenarios/workloads/workload.h"

#include <numeric>

#include "scenarios/workloads/saved_steps.h"
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

void train_steps(Workload& workload, Worker& worker, int steps,
                 const std::function<void(int step, int steps)>& progress, Report& report, BetweenSteps* between,
                 const std::optional<StepCheckpoints>& checkpoints) {
  workload.prepare();
  std::unique_ptr<SavedSteps> saved;
  if (checkpoints) saved = std::make_unique<SavedSteps>(workload, worker, *checkpoints);
  for (Device* device : worker.devices()) device->synchronize();
  if (between != nullptr) between->begin();
  for (int step = saved ? saved->first_step() : 0; step < steps; ++step) {
    const auto run = [&] {
      worker.begin_step(step);
      workload.run_step(step);
      worker.end_step();
    };
    // After the last step nothing is saved: a run that is interrupted then has a step left to do.
    if (saved && step + 1 < steps) {
      saved->run(run);
    } else {
      run();
    }
    if (progress && worker.index() == 0) progress(step + 1, steps);
    if (between != nullptr) between->step_done(step + 1);
  }
  workload.finish(report, worker.capabilities().carries_values);
  report.throughput_unit = workload.throughput_unit();
  if (saved) saved->end();
}

}  // namespace tandem
