// Removes the differences between the clocks of workers.
//
// What exchanges data ends at nearly the same time on all workers, so in a step each kind of exchange between two
// workers says how far their clocks are apart. A difference counts only if all kinds agree on its sign: where a receive
// ends after its send in both directions, or where one worker works longer after what it exchanges, clocks are not
// apart. It is also bounded: nothing ends before it has started on the other side, except sends.
#pragma once

#include "reports/blame/recorded_job.h"

namespace tandem {

// Changes the starts of a job to one clock in each step, and returns the largest difference between two clocks that was
// removed, in seconds.
double align_clocks(RecordedJob& job);

}  // namespace tandem
