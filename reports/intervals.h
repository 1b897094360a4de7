// Sets of times as sorted disjoint intervals, exact on integers.
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

// Sorted, disjoint, none empty, none touching another.
using IntervalSet = std::vector<Interval>;

IntervalSet union_of(std::vector<Interval> intervals);
Nanoseconds length_of(const IntervalSet& set);
// The length of what is in both.
Nanoseconds overlap_of(const IntervalSet& a, const IntervalSet& b);

}  // namespace tandem
