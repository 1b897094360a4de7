// What the measured steps of a run did, as exact counts: other programs on the machine change times, but none of these.
//
// Counts are totals over all measured steps, workers and devices. They do not depend on the order in which threads ran.
// Work that belongs to no step, such as that of preparing the run, is left out. Only memory is counted over the whole
// run, on the devices of this process.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/timeline.h"

namespace tandem {

// By name: "ops of compute", "bytes of compute", "op gemm", "copies of 4096 B", "copied bytes",
// "all_reduce 1048576 B x 8" (calls), and with an end that says so, "tensors in the run", "bytes of tensors in the
// run", "peak bytes of CPU:1 in the run".
using WorkCounts = std::map<std::string, std::int64_t>;

// Counts what the records of steps from `warmup_steps` on did.
WorkCounts work_counts(const Timeline& timeline, int warmup_steps);

// A count that differs between two runs.
struct CountChange {
  std::string name;
  std::int64_t before = 0;  // 0 as well where that run did nothing of the kind
  std::int64_t now = 0;

  bool operator==(const CountChange&) const = default;
};
// Returns what differs, by name. Kinds of counts that one of the two does not have at all, as of an earlier version,
// are not compared. Peaks of memory differ if they do by more than a tenth, because threads may free a tensor a little
// later. Names of ops only explain a change: if nothing else differs, nothing does.
std::vector<CountChange> count_changes(const WorkCounts& now, const WorkCounts& before);

// Whether all of these became smaller, names of ops apart.
bool is_less(const std::vector<CountChange>& changes);

// Returns "copies of 4096 B: 12 -> 13 per step", or the totals where the steps differ among themselves and for counts
// of the whole run.
std::string count_change_text(const CountChange& change, int measured_steps);

}  // namespace tandem
