// What measured times say about other sizes, devices and nodes: closed forms, and their limits.
#include "engine/collective_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr double kMiB = 1 << 20;

CollectivePoint point(double bytes, double time_s, double model_s = 0, int devices = 8, int nodes = 1) {
  return {.devices = devices, .nodes = nodes, .bytes = bytes, .time_s = time_s, .model_s = model_s};
}

CollectivePoint wanted(double bytes, double model_s = 0, int devices = 8, int nodes = 1) {
  return point(bytes, 0, model_s, devices, nodes);
}

CollectiveFit fit_of(const std::vector<CollectivePoint>& points) {
  return {CollectiveKind::all_reduce, points};
}

TEST(CollectiveFit, IsLinearInBytesBetweenTwoSizes) {
  const CollectiveFit fit = fit_of({point(3000, 30), point(1000, 10)});
  const auto prediction = fit.predict(wanted(1500));
  EXPECT_DOUBLE_EQ(prediction->time_s, 15);
  EXPECT_EQ(prediction->basis, "interpolated");
  EXPECT_FALSE(prediction->is_extrapolated);
  EXPECT_DOUBLE_EQ(fit.predict(wanted(1000))->time_s, 10);
  EXPECT_DOUBLE_EQ(fit.predict(wanted(3000))->time_s, 30);
  EXPECT_THAT(fit.sizes(8, 1), ElementsAre(1000, 3000));
  EXPECT_THAT(fit.sizes(4, 1), ElementsAre());
}

TEST(CollectiveFit, IsFlatBelowAndKeepsTheLastSlopeAbove) {
  const CollectiveFit fit = fit_of({point(1000, 10), point(2000, 14), point(4000, 20)});
  EXPECT_DOUBLE_EQ(fit.predict(wanted(8))->time_s, 10);
  EXPECT_DOUBLE_EQ(fit.predict(wanted(10'000))->time_s, 38);
  for (const double bytes : {8.0, 10'000.0}) {
    EXPECT_EQ(fit.predict(wanted(bytes))->basis, "beyond the measured sizes");
    EXPECT_TRUE(fit.predict(wanted(bytes))->is_extrapolated);
  }
  EXPECT_DOUBLE_EQ(fit_of({point(1000, 10), point(2000, 10)}).predict(wanted(4000))->time_s, 20)
      << "equal times have no slope: the bandwidth of the largest";
  EXPECT_DOUBLE_EQ(fit_of({point(1000, 10)}).predict(wanted(3000))->time_s, 30);
}

TEST(CollectiveFit, RepairsATimeThatIsLongerThanThatOfALargerSize) {
  const CollectiveFit fit = fit_of({point(8, 68), point(16, 80), point(32, 25), point(64, 26)});
  EXPECT_DOUBLE_EQ(fit.predict(wanted(8))->time_s, 25);
  EXPECT_DOUBLE_EQ(fit.predict(wanted(16))->time_s, 25);
  EXPECT_DOUBLE_EQ(fit.predict(wanted(64))->time_s, 26);
  EXPECT_EQ(fit.repaired(8, 1), 2);
  EXPECT_EQ(fit.repaired(2, 1), 0);
}

TEST(CollectiveFit, TakesTheMedianOfRepeatedMeasurements) {
  EXPECT_DOUBLE_EQ(fit_of({point(8, 50), point(8, 10), point(8, 12)}).predict(wanted(8))->time_s, 12);
  EXPECT_DOUBLE_EQ(fit_of({point(8, 50), point(8, 10), point(8, 12), point(8, 14)}).predict(wanted(8))->time_s, 13);
}

// The model takes 1 s per byte; the measured times are 2 and 4 times as long.
TEST(CollectiveFit, TakesTheShapeOfAModelBetweenTwoSizes) {
  const CollectiveFit fit = fit_of({point(1000, 2000, 1000), point(4000, 16'000, 4000)});
  const double line = 2000 + 14'000.0 / 3;
  const double residual = std::sqrt(2.0 * 4.0);  // 2000 is half way in the logarithm
  EXPECT_DOUBLE_EQ(fit.predict(wanted(2000, 2000))->time_s, std::sqrt(line * 2000 * residual));
  EXPECT_DOUBLE_EQ(fit.predict(wanted(2000))->time_s, line) << "without the model's time";
  EXPECT_DOUBLE_EQ(fit.predict(wanted(4000, 4000))->time_s, 16'000);
  EXPECT_DOUBLE_EQ(fit.predict(wanted(2000, 1e9))->time_s, std::sqrt(line * 16'000)) << "never above the next size";
}

// A ring: n - 1 steps of 5 us and a share of the bytes at 100 GB/s.
double time_of_ring_s(int n, double bytes) {
  return (n - 1) * (5e-6 + bytes / n / 100e9);
}

std::vector<CollectivePoint> rings(const std::vector<int>& devices, const std::vector<double>& bytes) {
  std::vector<CollectivePoint> points;
  for (const int n : devices) {
    for (const double size : bytes) points.push_back(point(size, time_of_ring_s(n, size), 0, n));
  }
  return points;
}

TEST(CollectiveFit, OtherNumbersOfDevicesAreALineInTheSteps) {
  const CollectiveFit fit(CollectiveKind::all_gather, rings({2, 4}, {1024, 64 * kMiB}));
  for (const double bytes : {8192.0, kMiB, 100 * kMiB}) {
    for (const int n : {3, 8}) {
      const auto prediction = fit.predict(wanted(bytes, 0, n));
      EXPECT_NEAR(prediction->time_s, time_of_ring_s(n, bytes), 1e-12) << n << " devices, " << bytes;
      EXPECT_EQ(prediction->basis, "line over 2 and 4 devices");
      EXPECT_TRUE(prediction->is_extrapolated);
    }
  }
  const CollectiveFit three(CollectiveKind::all_gather, rings({2, 4, 8}, {1024, 64 * kMiB}));
  EXPECT_EQ(three.predict(wanted(kMiB, 0, 6))->basis, "line over 4 and 8 devices");
  EXPECT_EQ(three.predict(wanted(kMiB, 0, 16))->basis, "line over 4 and 8 devices");
}

// At 2 MiB each two devices switch to a faster protocol, four do not: the step at 4 MiB is that of the line at 8 MiB.
TEST(CollectiveFit, ALineNeverFallsWithTheSize) {
  const CollectiveFit fit(CollectiveKind::all_gather, {point(kMiB, 10e-6, 0, 2), point(2 * kMiB, 20e-6, 0, 2),
                                                       point(64 * kMiB, 640e-6, 0, 2), point(2 * kMiB, 34e-6, 0, 4),
                                                       point(4 * kMiB, 34e-6, 0, 4), point(128 * kMiB, 1600e-6, 0, 4)});
  EXPECT_NEAR(fit.predict(wanted(8 * kMiB))->time_s, (34 + 2 * 14) * 1e-6, 1e-12);
  EXPECT_NEAR(fit.predict(wanted(4 * kMiB))->time_s, (34 + 2 * 14) * 1e-6, 1e-12) << "not 34 + 2 x 24";
}

// The model knows of a faster algorithm on 8 devices; what is measured takes twice as long as the model says.
TEST(CollectiveFit, ALineBendsAsTheModelDoes) {
  std::vector<CollectivePoint> points = rings({2, 4}, {32 * kMiB, 64 * kMiB});
  for (CollectivePoint& ring : points) ring.model_s = ring.time_s / 2;
  const CollectiveFit fit(CollectiveKind::all_gather, points);
  const double bytes = 128 * kMiB, fast_s = 0.8 * time_of_ring_s(8, bytes);
  const auto prediction = fit.predict(wanted(bytes, fast_s / 2));
  EXPECT_NEAR(prediction->time_s, fast_s, 1e-12);
  EXPECT_EQ(prediction->basis, "line over 2 and 4 devices");
}

TEST(CollectiveFit, EveryRankOfABroadcastReceivesAllBytes) {
  const auto chain_s = [](int n, double bytes) { return (n - 1) * 5e-6 + bytes / 100e9; };
  std::vector<CollectivePoint> points;
  for (const int n : {2, 4}) {
    for (const double bytes : {1024.0, 64 * kMiB}) points.push_back(point(bytes, chain_s(n, bytes), 0, n));
  }
  const CollectiveFit fit(CollectiveKind::broadcast, points);
  EXPECT_NEAR(fit.predict(wanted(kMiB, 0, 8))->time_s, chain_s(8, kMiB), 1e-12);
}

// Two GPUs with one link between them, four with three each: eight follow the model.
TEST(CollectiveFit, OtherNumbersOfDevicesFollowTheModelWhereTheLinksDiffer) {
  const CollectiveFit fit(CollectiveKind::all_gather,
                          {point(64 * kMiB, 1e-3, 2e-3, 2), point(64 * kMiB, 0.2e-3, 0.1e-3, 4)});
  const auto prediction = fit.predict(wanted(128 * kMiB, 0.3e-3, 8));
  EXPECT_DOUBLE_EQ(prediction->time_s, 0.6e-3);
  EXPECT_EQ(prediction->basis, "residual of 4 devices");
  EXPECT_FALSE(fit.predict(wanted(128 * kMiB, 0, 8)).has_value());
}

TEST(CollectiveFit, OtherNumbersOfNodesFollowTheModel) {
  const CollectiveFit fit = fit_of({point(kMiB, 3e-6, 2e-6), point(4 * kMiB, 16e-6, 4e-6), point(kMiB, 9, 1, 16, 4)});
  const auto prediction = fit.predict(wanted(2 * kMiB, 10e-6, 16, 2));
  EXPECT_DOUBLE_EQ(prediction->time_s, 10e-6 * std::sqrt(1.5 * 4));
  EXPECT_EQ(prediction->basis, "residual of 1 node");
  EXPECT_TRUE(prediction->is_extrapolated);
  EXPECT_DOUBLE_EQ(fit.predict(wanted(64 * kMiB, 10e-6, 16, 2))->time_s, 40e-6)
      << "beyond the sizes: the last residual";
  EXPECT_FALSE(fit.predict(wanted(kMiB, 0, 16, 2)).has_value());
  EXPECT_FALSE(fit_of({point(kMiB, 9, 1, 16, 4)}).predict(wanted(kMiB, 1, 8, 1)).has_value());
}

TEST(CollectiveFit, RefusesPointsThatCannotBe) {
  const auto refuses = [](const CollectivePoint& wrong, const char* message) {
    EXPECT_THAT([&] { fit_of({wrong}); }, ThrowsMessage<UsageError>(HasSubstr(message)));
  };
  refuses(point(8, 0), "a measured time of 0 s");
  refuses(point(8, -1), "a measured time of -1 s");
  refuses(point(0, 1), "a collective of 0 bytes");
  refuses(point(8, 1, -1), "a modelled time of -1 s");
  refuses(point(8, 1, 0, 1), "a collective on 1 devices of 1 nodes");
  refuses(point(8, 1, 0, 4, 8), "a collective on 4 devices of 8 nodes");
  EXPECT_THAT([] { fit_of({}); }, ThrowsMessage<UsageError>("a fit without points"));
}

}  // namespace
}  // namespace tandem
