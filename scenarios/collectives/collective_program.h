// The program of run_collective(). It uses only the engine contract.
#pragma once

#include <atomic>
#include <functional>
#include <span>
#include <vector>

#include "engine/worker.h"
#include "scenarios/collectives/collective_sweep.h"

namespace tandem::collectives {

// A size of the sweep: the bytes of the larger buffer, and the elements of each of a rank's parts.
struct Size {
  std::int64_t bytes = 0;
  std::int64_t part_count = 0;
  std::int64_t printed_count = 0;  // nccl-tests' count: elements that one rank contributes
};
// Returns whether a communicator has this collective in place only, with one buffer as input and output.
bool works_in_place(CollectiveKind kind);

std::vector<Size> sizes_of(const CollectiveSweep& sweep, int ranks);

// Runs the sweep over `group` on this worker's devices. The timed calls of sizes[i] have step i. `wrong[i]` counts
// wrong elements. Worker 0 calls `progress` now and then, with the number of timed calls so far.
void run_sweep(Worker& worker, std::span<const DeviceId> group, const CollectiveSweep& sweep,
               std::span<const Size> sizes, std::span<std::atomic<std::int64_t>> wrong,
               const std::function<void(std::int64_t done)>& progress);

}  // namespace tandem::collectives
