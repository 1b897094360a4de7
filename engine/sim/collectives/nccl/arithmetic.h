// Arithmetic that the parts of the mechanism share.
#pragma once

#include <algorithm>

#include "topologies/base/portable_math.h"

namespace tandem::sim::nccl {

// Returns the microseconds that bytes take at this many GB/s.
inline double us_at(double bytes, double gbs) {
  return bytes / (1000 * gbs);
}

// The time of two things that overlap. The larger `overlap` is, the more of the shorter one is hidden; with 1 nothing
// is, and the times add up.
inline double either(double a_us, double b_us, double overlap) {
  if (a_us <= 0 || b_us <= 0) return std::max(a_us, b_us);
  return portable::pow(portable::pow(a_us, overlap) + portable::pow(b_us, overlap), 1 / overlap);
}

// 0 up to `from`, 1 from `to` on, linear in the logarithm between.
inline double rising(double value, double from, double to) {
  if (value <= from) return 0;
  return std::min(1.0, portable::log(value / from) / portable::log(to / from));
}

}  // namespace tandem::sim::nccl
