#include "reports/base/change_points.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace tandem {
namespace {

// The definition, with nothing summed twice over.
double divergence_by_definition(const std::vector<double>& x, const std::vector<double>& y) {
  const auto within = [](const std::vector<double>& values) {
    double sum = 0;
    int pairs = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      for (std::size_t j = i + 1; j < values.size(); ++j, ++pairs) sum += std::abs(values[i] - values[j]);
    }
    return pairs == 0 ? 0 : sum / pairs;
  };
  double between = 0;
  for (const double a : x) {
    for (const double b : y) between += std::abs(a - b);
  }
  const auto n = static_cast<double>(x.size()), m = static_cast<double>(y.size());
  return n * m / (n + m) * (2 * between / (n * m) - within(x) - within(y));
}

// Levels that follow one another, each with so many values and noise of 1 %.
std::vector<double> levels(const std::vector<std::pair<int, double>>& parts, std::uint64_t seed, double noise = 0.01) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, noise);
  std::vector<double> logs;
  for (const auto& [count, level] : parts) {
    for (int i = 0; i < count; ++i) logs.push_back(std::log(level) + normal(random));
  }
  return logs;
}

TEST(SeriesDivision, IsTheLargestByDefinition) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const std::vector<double> values = levels({{7, 1}, {6, 1.02}, {4, 0.99}}, seed);
    double largest = 0;
    for (std::size_t first = 2; first <= values.size(); ++first) {
      for (std::size_t second = 2; first + second <= values.size(); ++second) {
        const auto middle = values.begin() + static_cast<std::ptrdiff_t>(first);
        largest = std::max(largest, divergence_by_definition({values.begin(), middle},
                                                             {middle, middle + static_cast<std::ptrdiff_t>(second)}));
      }
    }
    const SeriesDivision best = best_division(values, 2);
    EXPECT_NEAR(best.q, largest, 1e-12) << seed;
    const auto middle = values.begin() + best.first;
    EXPECT_NEAR(divergence_by_definition({values.begin(), middle}, {middle, middle + best.second}), best.q, 1e-12);
  }
}

// By hand: of 0 0 1 1 the halves give 2*2/4 * (2*1 - 0 - 0) = 2.
TEST(SeriesDivision, OfAStepIsKnown) {
  const std::vector<double> values = {0, 0, 1, 1};
  const SeriesDivision best = best_division(values, 2);
  EXPECT_EQ(best.first, 2);
  EXPECT_EQ(best.second, 2);
  EXPECT_DOUBLE_EQ(best.q, 2);
  EXPECT_EQ(best_division(values, 3).q, 0);
  EXPECT_EQ(best_division({}, 1).q, 0);
}

TEST(ChangePoints, AreWhereTheLevelChanges) {
  const auto found = change_points(levels({{30, 1.0}, {30, 1.1}, {40, 0.95}}, 5));
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].index, 30);
  EXPECT_NEAR(found[0].change, 0.1, 0.01);
  EXPECT_EQ(found[1].index, 60);
  EXPECT_NEAR(found[1].change, 0.95 / 1.1 - 1, 0.01);
  EXPECT_LE(found[0].p_value, 0.05);
}

TEST(ChangePoints, HaveALeastMagnitude) {
  const std::vector<double> logs = levels({{40, 1.0}, {40, 1.02}}, 6);
  EXPECT_TRUE(change_points(logs).empty());
  ASSERT_EQ(change_points(logs, {.margin = 0.01}).size(), 1U);
  EXPECT_NEAR(change_points(logs, {.margin = 0.01})[0].index, 40, 2);
}

TEST(ChangePoints, AreNotInNoise) {
  int series_with_some = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    series_with_some += change_points(levels({{60, 1.0}}, seed), {.margin = 1e-9}).empty() ? 0 : 1;
  }
  EXPECT_LE(series_with_some, 12) << "5 of 100 are to be expected at the level of 5 %";
}

TEST(ChangePoints, OfNothingAndOfOneValueAreNone) {
  EXPECT_TRUE(change_points({}).empty());
  EXPECT_TRUE(change_points(std::vector<double>(1, 0.5)).empty());
  EXPECT_TRUE(change_points(std::vector<double>(200, 0.5)).empty());
}

TEST(ChangePoints, AreTheSameEveryTime) {
  const std::vector<double> logs = levels({{25, 1.0}, {25, 1.05}}, 9, 0.03);
  const auto first = change_points(logs);
  const auto again = change_points(logs);
  ASSERT_EQ(first.size(), again.size());
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_EQ(first[i].p_value, again[i].p_value);
}

}  // namespace
}  // namespace tandem
