// Sets of times as sorted disjoint intervals, with exact integer arithmetic.
#pragma once

#include <vector>

#include "engine/timeline.h"

namespace tandem {

// Half open: [start, end).
struct Interval {
  Nanoseconds start = 0;
  Nanoseconds end = 0;
  bool operator==(const Interval&) const = default;
};

// Sorted and disjoint; no interval is empty or touches another.
using IntervalSet = std::vector<Interval>;

IntervalSet union_of(std::vector<Interval> intervals);
Nanoseconds length_of(const IntervalSet& set);
// Returns the part of `a` that is not in `b`.
IntervalSet difference_of(const IntervalSet& a, const IntervalSet& b);
// Returns the length of the intersection.
Nanoseconds overlap_of(const IntervalSet& a, const IntervalSet& b);

}  // namespace tandem
