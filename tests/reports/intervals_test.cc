#include "reports/base/intervals.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

TEST(Intervals, UnionJoinsWhatOverlapsOrTouchesAndDropsWhatIsEmpty) {
  EXPECT_EQ(union_of({{50, 60}, {0, 10}, {5, 20}, {20, 25}, {30, 30}, {52, 55}}), (IntervalSet{{0, 25}, {50, 60}}));
  EXPECT_EQ(union_of({}), IntervalSet{});
}

TEST(Intervals, LengthIsExactBeyondWhatDoublesHold) {
  const Nanoseconds far = Nanoseconds{1} << 62;
  EXPECT_EQ(length_of(union_of({{far, far + 1}, {0, 1}})), 2);
}

TEST(Intervals, DifferenceIsWhatTheOtherLacks) {
  const IntervalSet a{{0, 10}, {20, 30}, {40, 50}};
  EXPECT_EQ(difference_of(a, {{5, 25}, {27, 28}, {29, 41}, {60, 70}}),
            (IntervalSet{{0, 5}, {25, 27}, {28, 29}, {41, 50}}));
  EXPECT_EQ(difference_of(a, {{0, 50}}), IntervalSet{});
  EXPECT_EQ(difference_of(a, {{10, 20}, {30, 40}}), a);
  EXPECT_EQ(difference_of(a, {}), a);
  EXPECT_EQ(difference_of({}, a), IntervalSet{});
}

TEST(Intervals, OverlapCountsWhatIsInBoth) {
  const IntervalSet a{{0, 10}, {20, 30}, {40, 50}};
  EXPECT_EQ(overlap_of(a, {{5, 25}, {29, 41}, {60, 70}}), 5 + 5 + 1 + 1);
  EXPECT_EQ(overlap_of({{5, 25}, {29, 41}, {60, 70}}, a), 12);
  EXPECT_EQ(overlap_of(a, {}), 0);
  EXPECT_EQ(overlap_of({}, a), 0);
  EXPECT_EQ(overlap_of({{20, 21}}, a), 1);
  EXPECT_EQ(overlap_of({{10, 20}}, a), 0);
}

}  // namespace
}  // namespace tandem
