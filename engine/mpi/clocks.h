// Measures how far the ranks' clocks are from rank 0's, so that one timeline can hold the records of all.
#pragma once

#include <functional>
#include <vector>

#include "engine/mpi/transport/transport.h"
#include "engine/timeline.h"

namespace tandem::mpi {

// A clock compared with rank 0's, by the shortest of several exchanges of messages: the difference is taken at half its
// duration, and is wrong by at most half of that duration.
struct ClockReading {
  Nanoseconds at_ns = 0;      // by the clock itself
  Nanoseconds offset_ns = 0;  // how far this clock is ahead of rank 0's
  Nanoseconds error_ns = 0;
};

// Reads the clocks of all ranks, which all call this while no collective is under way. Returns the readings by rank on
// rank 0, nothing on the others. That of a lost rank is all 0.
std::vector<ClockReading> read_clocks(Transport& transport, const std::function<Nanoseconds()>& now);

// Converts the times of a clock between two readings.
struct AlignedClock {
  ClockReading begin, end;

  Nanoseconds on_rank_0(Nanoseconds at_ns) const;
  Nanoseconds drift_ns() const { return end.offset_ns - begin.offset_ns; }
};

}  // namespace tandem::mpi
