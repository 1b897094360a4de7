// Divides the steps of a run into parts that add up to them (PerStep), and finds what devices do that train no replica.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "reports/run/report.h"

namespace tandem {

// Returns the steps after the warm-up, in ascending order. Throws Error if none remains.
std::vector<int> measured_steps(const Timeline& timeline, int warmup_steps);

struct DividedSteps {
  PerStep per_step;
  std::optional<OtherDevices> other_devices{};
  std::map<int, PerStep> workers{};  // by worker, for those that have steps
};

// The mean step times to which the parts add up.
struct MeanSteps {
  Nanoseconds all = 0;
  std::map<int, Nanoseconds> workers{};
};

// Divides the measured `steps`, which must ascend. The devices that compute in them are those that train; if none
// computes, all devices of workers with steps are. What ran on a device during a step counts, whichever step issued it.
// The parts are means over the steps.
DividedSteps divide_steps(const Timeline& timeline, const std::vector<int>& steps, Pace pace, const MeanSteps& means);

}  // namespace tandem
