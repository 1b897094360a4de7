#include "reports/intervals.h"

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

Nanoseconds overlap_of(const IntervalSet& a, const IntervalSet& b) {
  Nanoseconds length = 0;
  // The first of b that can reach into a; from there on both sets are walked once.
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
