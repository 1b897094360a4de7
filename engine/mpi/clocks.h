// How far the clocks of the ranks are from rank 0's, so that one timeline has the records of all.
#pragma once

#include <functional>
#include <vector>

#include "engine/mpi/transport.h"
#include "engine/timeline.h"

namespace tandem::mpi {

// A clock compared with rank 0's. The best of some exchanges of messages: the difference at half its duration, and half
// its duration as what that may be wrong by.
struct ClockReading {
  Nanoseconds at_ns = 0;      // by the clock itself
  Nanoseconds offset_ns = 0;  // how far it is ahead of rank 0's
  Nanoseconds error_ns = 0;
};

// All ranks call it, while no collective is under way. Returns the readings by rank on rank 0, nothing on others.
std::vector<ClockReading> read_clocks(Transport& transport, const std::function<Nanoseconds()>& now);

// A clock between two readings.
struct AlignedClock {
  ClockReading begin, end;

  Nanoseconds on_rank_0(Nanoseconds at_ns) const;
  Nanoseconds drift_ns() const { return end.offset_ns - begin.offset_ns; }
};

}  // namespace tandem::mpi
