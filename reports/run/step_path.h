// Finds the chain of records that decided how long a step took, backwards from its end: the record that ended last;
// then the record that ended on the same device when that one began; and where the device was idle before it, the
// record that ended last on any device. From a collective the chain goes on at the rank that arrived last.
#pragma once

#include <map>
#include <vector>

#include "engine/timeline.h"
#include "reports/base/intervals.h"
#include "reports/run/report.h"

namespace tandem {

// A record on the path, from the instant at which nothing held it up any more; for a collective that is the last
// arrival.
struct PathPart {
  const Record* record = nullptr;
  Interval time;  // in the step
};

struct StepPath {
  std::vector<PathPart> parts;  // in the order of time
  std::map<Category, Nanoseconds> by_category{};
  Nanoseconds idle = 0;  // between the parts, at the start and at the end, where no device had work that mattered
};

// A step of one worker, or of all workers in step.
struct TakenStep {
  int step = 0;
  Interval time;
};

// Returns the step of median length among `steps`, which must ascend and not be empty. If their number is even, it is
// the shorter of the middle two, so that the result is a step that really ran.
TakenStep median_step_of(const Timeline& timeline, const std::vector<int>& steps, Pace pace);

// Returns the path through the step `window`, to which its parts and idle time add up. Pointers are into `timeline`.
StepPath step_path(const Timeline& timeline, Interval window);

}  // namespace tandem
