#include "topologies/base/portable_math.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace tandem {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The difference from a more exact value, in units in the last place of that value.
double last_places(double value, long double exact) {
  const double rounded = static_cast<double>(exact);
  const double place = std::nextafter(std::abs(rounded), kInfinity) - std::abs(rounded);
  return static_cast<double>(std::abs(static_cast<long double>(value) - exact) / place);
}

TEST(PortableMath, ExpAgreesWithTheCLibrary) {
  double worst = 0;
  for (double x = -700; x < 700; x += 0.37) worst = std::max(worst, last_places(portable::exp(x), expl(x)));
  for (double x = -1; x < 1; x += 0.00137) worst = std::max(worst, last_places(portable::exp(x), expl(x)));
  EXPECT_LT(worst, 2);
}

TEST(PortableMath, LogAgreesWithTheCLibrary) {
  double worst = 0;
  for (double x = 1e-300; x < 1e300; x *= 1.37) worst = std::max(worst, last_places(portable::log(x), logl(x)));
  for (double x = 0.5; x < 2; x += 0.00137) worst = std::max(worst, last_places(portable::log(x), logl(x)));
  for (double f = 1e-15; f < 0.1; f *= 3) {
    worst = std::max(worst, last_places(portable::log(1 + f), logl(1 + f)));
    worst = std::max(worst, last_places(portable::log(1 - f), logl(1 - f)));
  }
  EXPECT_LT(worst, 2);
}

TEST(PortableMath, PowAndErfcAgreeWithTheCLibrary) {
  for (double x = 1e-6; x < 1e6; x *= 1.91) {
    for (double y = -5; y < 5; y += 0.43) EXPECT_NEAR(portable::pow(x, y) / std::pow(x, y), 1, 1e-13) << x << " " << y;
  }
  for (double x = -8; x < 26; x += 0.013) EXPECT_NEAR(portable::erfc(x) / std::erfc(x), 1, 1e-13) << x;
}

TEST(PortableMath, SineAndCosineAgreeWithTheCLibrary) {
  const auto expect_at = [](double angle) {
    const auto [sine, cosine] = portable::sine_cosine(angle);
    EXPECT_NEAR(sine, static_cast<double>(sinl(angle)), 5e-16) << angle;
    EXPECT_NEAR(cosine, static_cast<double>(cosl(angle)), 5e-16) << angle;
  };
  for (double angle = -20; angle < 20; angle += 0.0137) expect_at(angle);
  for (double angle = 1; angle < 1e8; angle *= 1.0137) expect_at(angle);
  EXPECT_EQ(portable::sine_cosine(0).sine, 0);
  EXPECT_EQ(portable::sine_cosine(0).cosine, 1);
  EXPECT_TRUE(std::isnan(portable::sine_cosine(kInfinity).sine));
}

TEST(PortableMath, LimitsAreThoseOfTheCLibrary) {
  EXPECT_EQ(portable::exp(0), 1);
  EXPECT_EQ(portable::exp(-kInfinity), 0);
  EXPECT_EQ(portable::exp(kInfinity), kInfinity);
  EXPECT_EQ(portable::exp(711), kInfinity);
  EXPECT_EQ(portable::exp(-745), std::exp(-745));  // the smallest number that is not 0
  EXPECT_TRUE(std::isnan(portable::exp(std::nan(""))));
  EXPECT_EQ(portable::log(1), 0);
  EXPECT_EQ(portable::log(0), -kInfinity);
  EXPECT_EQ(portable::log(kInfinity), kInfinity);
  EXPECT_TRUE(std::isnan(portable::log(-1)));
  EXPECT_EQ(portable::pow(0, 2), 0);
  EXPECT_EQ(portable::pow(0, 0), 1);
  EXPECT_EQ(portable::pow(7, 1), 7);
  EXPECT_TRUE(std::isnan(portable::pow(-2, 2)));
  EXPECT_EQ(portable::erfc(0), 1);
  EXPECT_EQ(portable::erfc(kInfinity), 0);
  EXPECT_EQ(portable::erfc(-kInfinity), 2);
}

// The bits that one machine computed: every other one must find the same.
TEST(PortableMath, BitsAreTheSameOnEveryMachine) {
  std::uint64_t all = 0;
  const auto add = [&](double value) { all = std::rotl(all, 7) ^ std::bit_cast<std::uint64_t>(value); };
  for (int i = 1; i <= 10000; ++i) {
    add(portable::exp(0.0713 * (i - 5000)));
    add(portable::log(0.31 * i));
    add(portable::pow(0.01 * i, 1.18));
    add(portable::erfc(0.001 * (i - 2000)));
  }
  EXPECT_EQ(all, 15223940082263992589u);
}

}  // namespace
}  // namespace tandem
