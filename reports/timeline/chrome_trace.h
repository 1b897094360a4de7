// Writes a timeline as Chrome trace JSON, for Perfetto, chrome://tracing and Holistic Trace Analysis (HTA).
//
// A process of the trace is a worker; a thread, drawn as a lane, is a stream of a device. Lane 0 is the host with the
// step markers. Times are microseconds with three decimals relative to `baseTimeNanoseconds`, printed from integers.
// Events of one lane are nested or disjoint: an event that overlaps another is drawn in a second lane of its stream.
#pragma once

#include <optional>
#include <ostream>

#include "engine/timeline.h"

namespace tandem {

// Writes the records of all workers, or of `worker` alone, since HTA reads one file for each rank. Throws Error when
// the stream fails.
void write_chrome_trace(const Timeline& timeline, std::ostream& stream, std::optional<int> worker = std::nullopt);

}  // namespace tandem
