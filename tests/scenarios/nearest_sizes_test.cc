#include "strategies/parallel/layout/nearest_sizes.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

TEST(NearestSizes, OfWhatDividesATotal) {
  EXPECT_EQ(nearest_divisors(24, 5), "4 or 6 do");
  EXPECT_EQ(nearest_divisors(48, 64), "48 do");
  EXPECT_EQ(nearest_divisors(7, 3), "1 or 7 do");
  EXPECT_EQ(nearest_divisors(1, 3), "1 does");
  EXPECT_EQ(nearest_divisors(36, 7), "6 or 9 do") << "the square root counts once";
}

TEST(NearestSizes, OfTheMultiplesOfAUnit) {
  EXPECT_EQ(nearest_multiples(8, 12), "8 or 16 do");
  EXPECT_EQ(nearest_multiples(8, 3), "8 do");
  EXPECT_EQ(nearest_multiples(3, 8), "6 or 9 do");
}

}  // namespace
}  // namespace tandem
