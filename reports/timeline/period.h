// Finds in each step of a simulation a stretch that is the exact repetition of the one before it: the steady state of a
// pipeline whose micro-batches are equal, or the passes over which gradients are accumulated.
//
// Threads: any.
#pragma once

#include <optional>

#include "engine/timeline.h"

namespace tandem {

struct ShorterSteps {
  Timeline timeline;
  int period = 1;  // so many passes fewer are in each step
};

// Returns the timeline without one such stretch of each step, or nothing if some step has none. That is what the same
// program does whose steps have so many passes fewer: whatever is later begins earlier by the length of the stretch.
//
// `passes`: how often a step passes through the model; `period`: after how many of them the order of work repeats.
// Times may repeat after a multiple of that only: where a stage waits for what it began several passes ago, passes of
// two lengths may take turns (the cyclicity of a max-plus linear system: F. Baccelli et al., Synchronization and
// Linearity, 1992, section 3.7). The least multiple is taken, up to `most`.
// The timeline must have all records. Two stretches are repetitions if on every device and stream the same work begins
// at the same time in them and takes equally long, to the nanosecond to which records are rounded.
std::optional<ShorterSteps> without_a_period(const Timeline& timeline, int passes, int period, int most = 1);

}  // namespace tandem
