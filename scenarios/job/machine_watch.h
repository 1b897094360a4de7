// Watches what else this machine does while something is measured on it, by the counts of Linux under /proc and /sys.
//
// Threads: any. On other systems than Linux, and where /proc lacks a count, the use is unknown.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reports/run/report.h"

namespace tandem {

// Counts up to a point in time, from the start of the machine or of the process.
struct MachineCounts {
  std::chrono::steady_clock::time_point time{};
  int cores = 0;
  Nanoseconds busy = 0;                   // time of all processors, for all programs, to 10 ms
  Nanoseconds stolen = 0;                 // time that a virtual machine wanted and did not get
  Nanoseconds own = 0;                    // time of this process
  Nanoseconds launch = 0;                 // of the other processes of its launch on this machine, to 10 ms
  std::map<int, Nanoseconds> waited{};    // by its threads: ready, without a processor to run on
  std::int64_t involuntary_switches = 0;  // of this process
  double frequency_hz = 0;                // now: the median of the processors; 0: unknown
};

std::optional<MachineCounts> machine_counts();

// Returns the number of this machine's processors that work, whether or not this process may use them.
int online_processors();

// Returns the use between two points in time, without the waits of threads that ended between them. The other ranks of
// a launch are no others: that a launch lacks cores is part of what is measured.
MachineUse use_between(const MachineCounts& begin, const MachineCounts& end);

// Adds the readings of another run to `uses`, merged with those of the same GPU.
void add_use(std::vector<GpuUse>& uses, const GpuUse& use);

// Calls `measure` until nothing disturbed it, at most `tries` times. Returns the use during the last call. The time
// that others used counts as time waited, because the waits of threads that `measure` ended are unknown and it wants
// the machine to itself. `measure` adds what the drivers of GPUs reported to `gpus`.
std::optional<MachineUse> measure_undisturbed(int tries, const std::function<void(std::vector<GpuUse>& gpus)>& measure);

}  // namespace tandem
