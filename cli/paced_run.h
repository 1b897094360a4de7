// Measures a run while the machine keeps its pace (scenarios/calibration/pace.h).
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "scenarios/calibration/pace.h"
#include "scenarios/run/runner.h"

namespace tandem {

struct PacedMeasurement {
  std::string engine;  // that measures the pace
  int devices = 1;     // of the run
  int tries = 1;       // at most so many measurements
  // The pace of the calibration; empty: it is not known, or cannot be compared, as by the ranks of a launch, which
  // would disturb each other's look at it.
  std::optional<MachinePace> usual{};
};

struct PacedRun {
  RunResult result;
  std::optional<MachinePace> pace{};  // of the machine around the run, where that of the calibration is known
};

// Measures until two runs agree within 3 %, each of which had the same pace before and after and was not disturbed; a
// run of more than five seconds, or where no pace is known, once, unless something disturbs it. Returns the quickest of
// these, since what disturbs a run makes it longer; notes say how long the others took, and whether the pace changed.
// Throws Interrupted in the pause before another try.
PacedRun measure_at_pace(const PacedMeasurement& measurement, const std::function<RunResult()>& measure);

// Returns the topology at the pace of the run, and adds a note of what has changed; or the topology itself, where that
// is less than a few percent or the topology is another machine's.
std::shared_ptr<const Topology> topology_at(const std::shared_ptr<const Topology>& topology,
                                            const PacedMeasurement& measurement, const PacedRun& run,
                                            std::vector<std::string>& notes);

}  // namespace tandem
