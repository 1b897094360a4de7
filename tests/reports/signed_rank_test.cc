// The exact signed-rank test against published tables, an enumeration of all signs, and worked examples.
#include "reports/base/signed_rank.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

namespace tandem {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;

// F. Wilcoxon, S. K. Katti and R. A. Wilcox, Critical values and probability levels for the Wilcoxon rank sum test and
// the Wilcoxon signed rank test, Selected Tables in Mathematical Statistics 1 (1970), table 2: the largest sum with a
// one-sided probability of at most 0.05 and 0.01, for 5 to 25 differences; -1: there is none.
constexpr int kTable05[] = {0, 2, 3, 5, 8, 10, 13, 17, 21, 25, 30, 35, 41, 47, 53, 60, 67, 75, 83, 91, 100};
constexpr int kTable01[] = {-1, -1, 0, 1, 3, 5, 7, 9, 12, 15, 19, 23, 27, 32, 37, 43, 49, 55, 62, 69, 76};

// OEIS A226330 (J.-F. Alcover, after P. Mitic, Critical values for the Wilcoxon signed rank statistic, The Mathematica
// Journal 6, 3): the same for 0.025 and 6 to 40 differences.
constexpr int kTable025[] = {0,  2,  3,  5,   8,   10,  13,  17,  21,  25,  29,  34,  40,  46,  52,  58,  65, 73,
                             81, 89, 98, 107, 116, 126, 137, 147, 159, 170, 182, 195, 208, 221, 235, 249, 264};

TEST(SignedRank, CriticalValuesAreThoseOfTheTables) {
  for (int count = 6; count <= 40; ++count) {
    EXPECT_EQ(signed_rank_critical_value(count, 0.025).value_or(-1), kTable025[count - 6]) << count;
  }
  for (int count = 5; count <= 25; ++count) {
    EXPECT_EQ(signed_rank_critical_value(count, 0.05).value_or(-1), kTable05[count - 5]) << count;
    EXPECT_EQ(signed_rank_critical_value(count, 0.01).value_or(-1), kTable01[count - 5]) << count;
  }
  EXPECT_EQ(signed_rank_critical_value(30, 0.05), 151);
  EXPECT_EQ(signed_rank_critical_value(30, 0.01), 120);
  EXPECT_EQ(signed_rank_critical_value(40, 0.01), 238);
  EXPECT_EQ(signed_rank_critical_value(40, 0.005), 220);
}

TEST(SignedRank, ProbabilitiesCountTheAssignmentsOfSigns) {
  for (const int count : {1, 2, 5, 11}) {
    std::vector<int> assignments(static_cast<std::size_t>(count * (count + 1) / 2 + 1), 0);
    for (unsigned signs = 0; signs < 1U << count; ++signs) {
      int sum = 0;
      for (int rank = 1; rank <= count; ++rank) sum += (signs >> (rank - 1) & 1U) != 0 ? rank : 0;
      ++assignments[static_cast<std::size_t>(sum)];
    }
    int at_most = 0;
    for (std::size_t sum = 0; sum < assignments.size(); ++sum) {
      at_most += assignments[sum];
      EXPECT_EQ(signed_rank_probability(count, static_cast<int>(sum)), std::ldexp(at_most, -count)) << count;
    }
  }
}

// A normal approximation is good for as many as this.
TEST(SignedRank, ManyDifferencesAreNearlyNormal) {
  const double mean = 62.0 * 63 / 4, deviation = std::sqrt(62.0 * 63 * 125 / 24);
  const int value = signed_rank_critical_value(62, 0.01).value();
  EXPECT_NEAR((value + 0.5 - mean) / deviation, -2.326, 0.02);
}

TEST(CentreOf, IsTheMedianOfTheWalshAverages) {
  // The averages of 1, 2, 4, 8, 16 are 1 1.5 2 2.5 3 4 4.5 5 6 8 8.5 9 10 12 16.
  const auto centre = centre_of({16, 1, 4, 2, 8}, 1.0 / 32);
  ASSERT_TRUE(centre.has_value());
  EXPECT_EQ(centre->estimate, 5);
  EXPECT_EQ(centre->lower, 1);  // k = 0: the whole range
  EXPECT_EQ(centre->upper, 16);
  const auto narrower = centre_of({16, 1, 4, 2, 8}, 2.0 / 32);  // k = 1
  EXPECT_EQ(narrower->lower, 1.5);
  EXPECT_EQ(narrower->upper, 12);
  EXPECT_FALSE(centre_of({16, 1, 4, 2, 8}, 0.03).has_value()) << "1/32 is above it";
}

// M. Hollander and D. A. Wolfe, Nonparametric Statistical Methods (1973), section 3: nine patients before and after a
// tranquilizer. The estimate is -0.46, and the interval of 96.1 % from -0.786 to -0.010.
TEST(CentreOf, AgreesWithAWorkedExample) {
  const std::vector<double> before = {1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30};
  const std::vector<double> after = {0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29};
  std::vector<double> changes;
  for (std::size_t i = 0; i < before.size(); ++i) changes.push_back(after[i] - before[i]);
  const auto centre = centre_of(changes, 0.0196);
  ASSERT_TRUE(centre.has_value());
  EXPECT_NEAR(centre->estimate, -0.46, 1e-12);
  EXPECT_NEAR(centre->lower, -0.786, 1e-12);
  EXPECT_NEAR(centre->upper, -0.010, 1e-12);
  EXPECT_NEAR(1 - 2 * signed_rank_probability(9, 5), 0.961, 5e-4);
}

TEST(SignedRankPValue, CountsBothSides) {
  EXPECT_EQ(signed_rank_p_value({1, 2, 3, 4, 5}), 2.0 / 32);
  EXPECT_EQ(signed_rank_p_value({-1, 2, 3, 4, 5}), 4.0 / 32);
  EXPECT_EQ(signed_rank_p_value({0, 0}), 1);
  EXPECT_EQ(signed_rank_p_value({0, 1, 2, 3, 4, 5}), 2.0 / 32) << "zeros are left out";
  EXPECT_EQ(signed_rank_p_value({-1, 1, 2, 3, 4}), 6.0 / 32) << "a shared rank of 1.5 counts as 2";
}

// S. Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of Statistics 6 (1979).
TEST(HolmAdjusted, MultipliesTheSmallestByTheMost) {
  EXPECT_THAT(holm_adjusted({0.01, 0.04, 0.03, 0.005}),
              ElementsAre(DoubleEq(0.03), DoubleEq(0.06), DoubleEq(0.06), DoubleEq(0.02)));
  EXPECT_THAT(holm_adjusted({0.9, 0.8}), ElementsAre(1, 1));
  EXPECT_TRUE(holm_adjusted({}).empty());
}

}  // namespace
}  // namespace tandem
