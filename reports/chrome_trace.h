// A timeline as Chrome trace JSON, for Perfetto, chrome://tracing and Holistic Trace Analysis (HTA).
//
// A process is a worker, a lane (thread) one stream of a device; lane 0 is the host with the step markers. Times are
// microseconds with three decimals relative to `baseTimeNanoseconds`, printed from integers. In a lane events nest or
// are disjoint: one that overlaps another goes to a second lane of its stream.
#pragma once

#include <optional>
#include <ostream>

#include "engine/timeline.h"

namespace tandem {

// All workers, or with `worker` that one alone: HTA reads one file a rank. Throws Error when the stream fails.
void write_chrome_trace(const Timeline& timeline, std::ostream& stream, std::optional<int> worker = std::nullopt);

}  // namespace tandem
