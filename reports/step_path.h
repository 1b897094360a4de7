// The chain of records that decided how long a step took, found backwards from its end: what ended last; then what
// ended when that began, on the same device; and where the device was idle before it, what ended last on any. From a
// collective the way goes on at the rank that arrived last.
#pragma once

#include <map>
#include <vector>

#include "engine/timeline.h"
#include "reports/intervals.h"
#include "reports/report.h"

namespace tandem {

// A record on the path, from the instant on at which nothing else held it up: of a collective, the last arrival.
struct PathPart {
  const Record* record = nullptr;
  Interval time;  // in the step
};

struct StepPath {
  std::vector<PathPart> parts;  // in the order of time
  std::map<Category, Nanoseconds> by_category{};
  Nanoseconds idle = 0;  // between the parts, at the begin and at the end: no device had work that mattered
};

// A step of one worker, or of all of them in step.
struct TakenStep {
  int step = 0;
  Interval time;
};

// Returns the one of median length among `steps`, which must ascend; of an even number the shorter of the middle two,
// which one run really took. There must be one.
TakenStep median_step_of(const Timeline& timeline, const std::vector<int>& steps, Pace pace);

// `window` is the step: the parts and the idle time add up to it. Pointers are into `timeline`.
StepPath step_path(const Timeline& timeline, Interval window);

}  // namespace tandem
