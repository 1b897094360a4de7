// Divides the steps of a run into parts that add up to them (PerStep), and finds what other devices do meanwhile.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "reports/report.h"

namespace tandem {

// Returns the steps after the warm-up, in ascending order. Throws Error if none remains.
std::vector<int> measured_steps(const Timeline& timeline, int warmup_steps);

struct DividedSteps {
  PerStep per_step;
  std::optional<OtherDevices> other_devices{};
  std::map<int, PerStep> workers{};  // of those that have steps
};

// The median step times to which the parts add up.
struct MedianSteps {
  Nanoseconds all = 0;
  std::map<int, Nanoseconds> workers{};
};

// `steps` are the measured ones, in ascending order. Devices that compute in them train; where none does, those of
// every worker with steps. What ran on a device during a step counts, whichever step issued it. Of several steps the
// middle half by length is taken, in proportion to the median.
DividedSteps divide_steps(const Timeline& timeline, const std::vector<int>& steps, Pace pace,
                          const MedianSteps& medians);

}  // namespace tandem
