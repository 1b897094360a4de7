// Estimates how much memory a job needs on a device: docs/workloads.md.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reports/run/memory_need.h"
#include "scenarios/estimates/step_memory.h"
#include "scenarios/job/job.h"

namespace tandem {

// Returns the need of the device that needs most, in training or in an evaluation, with the memory that devices of the
// topology have (0 without one). Returns nothing for workloads that are trained for real, whose memory engines count,
// and for jobs that cannot run.
std::optional<MemoryNeed> memory_need(const Job& job);
bool is_memory_estimated(const Job& job);  // whether it returns something

// The device that needs most for training, in the course of a step. Only the need's activations and workspace change
// with the moments; of its workspace, unused gradients (activations.h) are part at every moment.
struct MemoryOfStep {
  MemoryNeed need{};
  DeviceShare share{};
  std::vector<StepMoment> moments{};
};
std::optional<MemoryOfStep> memory_of_step(const Job& job);
// Returns the largest workspace at any moment, not only at that of the need.
std::int64_t largest_workspace(const MemoryOfStep& step);

// A job needs more memory than its devices have, which its topology states. Exit code 3.
class MemoryError : public InputError {
 public:
  MemoryError(Diagnostic problem, const MemoryNeed& need) : InputError({std::move(problem)}), need_(need) {}
  const MemoryNeed& need() const { return need_; }

 private:
  MemoryNeed need_;
};

// Throws MemoryError, with each part of the need and with `advice`, which may be empty, if the devices are too small.
void check_memory(const Job& job, const std::optional<MemoryNeed>& need, const std::string& advice = "");

}  // namespace tandem
