#include "scenarios/workloads/divided.h"

#include <algorithm>
#include <numeric>

namespace tandem {
namespace {

// Returns the largest memory that a device of this worker has used, in bytes.
double memory_peak_bytes(const Worker& worker) {
  std::int64_t peak = 0;
  for (const Device* device : worker.devices()) peak = std::max(peak, device->memory_peak_bytes());
  return static_cast<double>(peak);
}

}  // namespace

DividedWorkload::DividedWorkload(Worker& worker, std::unique_ptr<TrainableModel> model, const Division& division,
                                 const ParallelOptions& options)
    : worker_(worker), model_(std::move(model)), division_(division), options_(options) {}

void DividedWorkload::prepare() {
  training_ = division_.train(worker_, *model_, options_);
}

void DividedWorkload::run_step(int step) {
  training_->run_step(step);
}

void DividedWorkload::finish(Report& report, bool carries_values) {
  report.metrics["parameters_per_device"] = static_cast<double>(training_->most_parameters());
  report.metrics["memory_peak_bytes"] = memory_peak_bytes(worker_);
  if (!carries_values || training_->losses().empty()) return;
  std::vector<float> losses;
  for (const Tensor& parts : training_->losses()) {
    const std::span<const float> values = parts.values<float>();
    losses.push_back(std::accumulate(values.begin(), values.end(), 0.0F));
  }
  if (worker_.count() > 1) losses = sum_over_workers(worker_, std::move(losses));
  report.loss.assign(losses.begin(), losses.end());
}

}  // namespace tandem
