// Finds in each step of a simulation a stretch that is the exact repetition of the one before it: the steady state of a
// pipeline whose micro-batches are equal, or the passes over which gradients are accumulated.
//
// Threads: any.
#pragma once

#include <optional>

#include "engine/timeline.h"

namespace tandem {

// Returns the timeline without one such stretch of each step, or nothing if some step has none. That is what the same
// program does whose steps have `period` passes fewer: whatever is later begins earlier by the length of the stretch.
//
// `passes`: how often a step passes through the model; `period`: after how many of them the order of work repeats. The
// timeline must have all records. Two stretches are repetitions if on every device and stream the same work begins at
// the same time in them and takes equally long, to the nanosecond to which records are rounded.
std::optional<Timeline> without_a_period(const Timeline& timeline, int passes, int period);

}  // namespace tandem
