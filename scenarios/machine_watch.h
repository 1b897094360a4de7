// Watches what else this machine does while something is measured on it, from what Linux counts under /proc.
//
// Threads: any one. Elsewhere than on Linux, and where /proc lacks a count, the use is not known.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reports/report.h"

namespace tandem {

// The counts at one time, since the machine or the process began.
struct MachineCounts {
  std::chrono::steady_clock::time_point time{};
  int cores = 0;
  Nanoseconds busy = 0;                   // of all processors, for anybody, to 10 ms
  Nanoseconds stolen = 0;                 // which a virtual machine did not get
  Nanoseconds own = 0;                    // of this process
  std::map<int, Nanoseconds> waited{};    // of each of its threads: ready, and no processor to run on
  std::int64_t involuntary_switches = 0;  // of this process
};

std::optional<MachineCounts> machine_counts();

// Returns the use between two times. The waits of threads that ended between them are not in it.
MachineUse use_between(const MachineCounts& begin, const MachineCounts& end);

// Adds the readings of another run, to those of the same GPU where there are some.
void add_use(std::vector<GpuUse>& uses, const GpuUse& use);

// Calls `measure` until nobody disturbed it, at most `tries` times. Returns the use during the last call, in which the
// time that others used counts as waited for: `measure` may end its threads, and wants the machine to itself. It adds
// what the drivers of GPUs said.
std::optional<MachineUse> measure_undisturbed(int tries, const std::function<void(std::vector<GpuUse>& gpus)>& measure);

}  // namespace tandem
