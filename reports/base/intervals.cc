#include "reports/base/intervals.h"

#include <algorithm>

namespace tandem {

IntervalSet union_of(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) { return a.start < b.start; });
  IntervalSet set;
  for (const Interval& interval : intervals) {
    if (interval.end <= interval.start) continue;
    if (!set.empty() && interval.start <= set.back().end) {
      set.back().end = std::max(set.back().end, interval.end);
    } else {
      set.push_back(interval);
    }
  }
  return set;
}

Nanoseconds length_of(const IntervalSet& set) {
  Nanoseconds length = 0;
  for (const Interval& interval : set) length += interval.end - interval.start;
  return length;
}

IntervalSet difference_of(const IntervalSet& a, const IntervalSet& b) {
  IntervalSet left;
  auto taken = b.begin();
  for (const Interval& interval : a) {
    Nanoseconds from = interval.start;
    while (taken != b.end() && taken->end <= from) ++taken;
    // An interval to take away may reach into the next interval of `a`, so `taken` is not advanced past it.
    for (; taken != b.end() && taken->start < interval.end; ++taken) {
      if (taken->start > from) left.push_back({from, taken->start});
      from = taken->end;
      if (from >= interval.end) break;
    }
    if (from < interval.end) left.push_back({from, interval.end});
  }
  return left;
}

Nanoseconds overlap_of(const IntervalSet& a, const IntervalSet& b) {
  Nanoseconds length = 0;
  // Begins at the first interval of b that can reach into a; from there on both sets are walked once.
  auto other = a.empty() ? b.end() : std::partition_point(b.begin(), b.end(), [&](const Interval& interval) {
    return interval.end <= a.front().start;
  });
  for (auto own = a.begin(); own != a.end() && other != b.end();) {
    length += std::max<Nanoseconds>(0, std::min(own->end, other->end) - std::max(own->start, other->start));
    if (own->end < other->end) {
      ++own;
    } else {
      ++other;
    }
  }
  return length;
}

}  // namespace tandem
