// Rates of matrix products between and beyond the measured shapes.
#include "engine/sim/costs/rate_curves.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tandem::sim {
namespace {

// A rate that follows a power law on each axis, so that interpolation in logarithms is exact.
double power_law(double m, double n, double k) {
  return 1e9 * std::pow(m, 0.3) * std::pow(n, 0.2) * std::pow(k, 0.1);
}

std::vector<GemmSample> grid(const std::vector<double>& sides) {
  std::vector<GemmSample> samples;
  for (const double m : sides) {
    for (const double n : sides) {
      for (const double k : sides) samples.push_back({m, n, k, power_law(m, n, k)});
    }
  }
  return samples;
}

constexpr double kExact = 1e-9;

TEST(GemmSurface, InterpolatesOnItsGridAndKeepsTheNearestRateBeyond) {
  const GemmSurface surface(grid({8, 64, 512}));
  EXPECT_NEAR(surface.at(20, 100, 300).per_s / power_law(20, 100, 300), 1, kExact);
  EXPECT_FALSE(surface.at(20, 100, 300).is_extrapolated);
  EXPECT_NEAR(surface.at(4096, 100, 4).per_s / power_law(512, 100, 8), 1, kExact);
  EXPECT_TRUE(surface.at(4096, 100, 300).is_extrapolated);
  EXPECT_TRUE(surface.at(20, 100, 4).is_extrapolated);
}

// A grid, and products with one side of 4,096, in m or k, at half the rate of those whose side is 64.
GemmSurface with_long_sides() {
  std::vector<GemmSample> samples = grid({8, 64});
  for (const double a : {8.0, 64.0}) {
    for (const double b : {8.0, 64.0}) {
      samples.push_back({4096, a, b, 0.5 * power_law(64, a, b)});
      samples.push_back({a, b, 4096, 0.5 * power_law(a, b, 64)});
    }
  }
  return GemmSurface(samples);
}

TEST(GemmSurface, LongSidesChangeTheRateOfTheGridAsMeasured) {
  const GemmSurface surface = with_long_sides();
  EXPECT_NEAR(surface.at(20, 30, 40).per_s / power_law(20, 30, 40), 1, kExact) << "inside, nothing changes";
  EXPECT_NEAR(surface.at(4096, 30, 40).per_s / power_law(64, 30, 40), 0.5, kExact);
  EXPECT_NEAR(surface.at(512, 30, 40).per_s / power_law(64, 30, 40), std::sqrt(0.5), kExact) << "half of the way";
  EXPECT_NEAR(surface.at(30, 40, 4096).per_s / power_law(30, 40, 64), 0.5, kExact);
  EXPECT_FALSE(surface.at(512, 30, 40).is_extrapolated);
  EXPECT_FALSE(surface.at(30, 40, 4096).is_extrapolated);
}

TEST(GemmSurface, NotesWhatNoProductWithALongSideShows) {
  const GemmSurface surface = with_long_sides();
  EXPECT_TRUE(surface.at(8192, 30, 40).is_extrapolated) << "longer than the longest";
  EXPECT_NEAR(surface.at(8192, 30, 40).per_s, surface.at(4096, 30, 40).per_s, 1);
  EXPECT_TRUE(surface.at(30, 512, 40).is_extrapolated) << "a long n was not measured";
  EXPECT_TRUE(surface.at(4096, 30, 4096).is_extrapolated) << "two long sides were not measured together";
  EXPECT_NEAR(surface.at(4096, 30, 4096).per_s / power_law(64, 30, 64), 0.25, kExact);
}

TEST(GemmSurface, NeedsNoCube) {
  std::vector<GemmSample> samples;
  for (const double m : {8.0, 64.0}) {
    for (const double n : {128.0, 512.0}) samples.push_back({m, n, 16, power_law(m, n, 16)});
  }
  EXPECT_NEAR(GemmSurface(samples).at(20, 300, 16).per_s / power_law(20, 300, 16), 1, kExact);
  samples.pop_back();  // no grid: the rate is one between the samples'
  const double rate = GemmSurface(samples).at(20, 300, 16).per_s;
  EXPECT_GT(rate, power_law(8, 128, 16));
  EXPECT_LT(rate, power_law(64, 512, 16));
}

}  // namespace
}  // namespace tandem::sim
