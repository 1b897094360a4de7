// Reads recorded traces of machines that come and go: CSV, a line for each event.
//
//   time_s,node,event        a header: `time` or `time_s` in seconds, `time_ms` in milliseconds; `node`; `event`
//   95,node7,remove
//
// Without a header, the first column is the time, and the others are the node and the event in either order. Events are
// add, remove and their synonyms: back, up, join; fail, down, lost, preempt.
//
// Threads: any.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "scenarios/faults/fault_settings.h"

namespace tandem {

// Reads a trace whose times have this unit in seconds; empty: what the header says, or else seconds. Throws InputError
// for a file that cannot be read or that breaks the rules above, with the line, and for dates that fall.
std::vector<TraceEvent> read_fault_trace(const std::filesystem::path& file,
                                         std::optional<double> unit_s = std::nullopt);

}  // namespace tandem
