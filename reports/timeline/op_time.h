// The time of a step's ops without what other programs on the machine added to it.
//
// Threads: any.
#pragma once

#include "engine/timeline.h"

namespace tandem {

// Returns the sum over the ops and copies of a step of the least time that each took in any step from `warmup_steps`
// on; 0 without any. Records are in the order of Timeline::records. The k-th op of a name on a stream is the same op in
// each step, and one that is not in every step counts by its share of the steps. An interruption, or a core that
// another program shares, makes some executions of an op longer, and seldom all; so this sum tells programs apart that
// differ by less than a busy machine moves their steps. Collectives do not count, because they wait.
Nanoseconds op_time(const Timeline& timeline, int warmup_steps);

}  // namespace tandem
