#include "reports/base/statistics.h"

#include <gtest/gtest.h>

#include <numeric>

namespace tandem {
namespace {

std::vector<Nanoseconds> one_to(int last) {
  std::vector<Nanoseconds> values(static_cast<std::size_t>(last));
  std::iota(values.rbegin(), values.rend(), 1);
  return values;
}

TEST(Statistics, MedianOfAnEvenCountIsTheIntegerMeanOfTheMiddleTwo) {
  EXPECT_EQ(median_of(std::vector<Nanoseconds>{7}), 7);
  EXPECT_EQ(median_of(std::vector<Nanoseconds>{9, 1, 5}), 5);
  EXPECT_EQ(median_of(std::vector<Nanoseconds>{4, 1, 100, 3}), 3);  // (3 + 4) / 2, rounded down
  EXPECT_DOUBLE_EQ(median_of(std::vector<double>{3, 4}), 3.5);
}

TEST(Statistics, P95IsTheNearestRank) {
  EXPECT_EQ(p95_of(one_to(1)), 1);
  EXPECT_EQ(p95_of(one_to(19)), 19);  // ceil(18.05) = 19
  EXPECT_EQ(p95_of(one_to(20)), 19);  // exactly 19
  EXPECT_EQ(p95_of(one_to(21)), 20);  // ceil(19.95) = 20
  EXPECT_EQ(p95_of(one_to(100)), 95);
}

TEST(Statistics, DeviationIsADistanceAndNotAValue) {
  EXPECT_EQ(median_absolute_deviation({1000, 1001, 999, 1000, 5000}), 1);
  EXPECT_EQ(median_absolute_deviation({10, 10}), 0);
}

}  // namespace
}  // namespace tandem
