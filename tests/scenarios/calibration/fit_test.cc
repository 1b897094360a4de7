// The pure parts of a calibration: statistics, the line of a link, and what records say.
#include "scenarios/calibration/fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/calibration/figures.h"

namespace tandem::calibration {
namespace {

using testing::DoubleNear;

std::vector<SizedTime> line_of(double latency_s, double bytes_per_s) {
  std::vector<SizedTime> times;
  for (double bytes = 4; bytes < 1e9; bytes *= 32) times.push_back({bytes, latency_s + bytes / bytes_per_s});
  return times;
}

TEST(Statistic, IsTheMedianAndItsSpread) {
  const Statistic statistic = statistic_of({10, 12, 9, 10, 100});
  EXPECT_EQ(statistic.median, 10);
  EXPECT_EQ(statistic.relative_spread, 0.1);
  EXPECT_EQ(statistic_of({0, 0}).relative_spread, 0) << "of nothing, nothing";
}

TEST(Statistic, OfAClockOfLargeStepsIsTheMeanOfTheMiddleHalf) {
  EXPECT_DOUBLE_EQ(middle_of({0, 2, 2, 2, 3, 3, 3, 90}).median, 2.5);
  EXPECT_EQ(middle_of({7}).median, 7);
}

TEST(Line, HoldsLatencyAndBandwidth) {
  const Line line = fit_line(line_of(1.5e-6, 50e9));
  EXPECT_NEAR(line.latency_s, 1.5e-6, 1e-12);
  EXPECT_NEAR(line.bytes_per_s / 50e9, 1, 1e-9);
  EXPECT_NEAR(line.relative_error, 0, 1e-9);
}

// A tenth more or less at every other size moves neither figure by more than that.
TEST(Line, BearsNoiseAtEverySizeAlike) {
  std::vector<SizedTime> times = line_of(2e-6, 10e9);
  for (std::size_t i = 0; i < times.size(); ++i) times[i].time_s *= i % 2 == 0 ? 1.1 : 0.9;
  const Line line = fit_line(times);
  EXPECT_THAT(line.latency_s, DoubleNear(2e-6, 0.2e-6));
  EXPECT_THAT(line.bytes_per_s, DoubleNear(10e9, 1e9));
  EXPECT_GT(line.relative_error, 0.01);
}

// Two copies that seem to take no time, on a clock that shows half a microsecond.
TEST(Line, MindsWhatTheClockCannotShow) {
  std::vector<SizedTime> times = line_of(2e-6, 50e9);
  times[0].time_s = times[1].time_s = 1e-10;
  const Line line = fit_line(times, 0.5e-6);
  EXPECT_THAT(line.bytes_per_s, DoubleNear(50e9, 10e9));
  EXPECT_GT(fit_line(times).bytes_per_s, 1e12) << "the two decide, where times are taken as exact";
}

TEST(Line, HasNoNegativeLatency) {
  const Line line = fit_line({{.bytes = 1000, .time_s = 0.5e-6}, {.bytes = 2000, .time_s = 2e-6}});
  EXPECT_EQ(line.latency_s, 0);
  EXPECT_GT(line.bytes_per_s, 0);
}

// Records of two devices, interleaved as they ran.
Measurement measured(std::vector<Record> records) {
  Measurement measurement;
  measurement.timeline.records = std::move(records);
  measurement.findings.launch_s = {0.5e-6};
  return measurement;
}

Record op(std::string_view name, int device, Nanoseconds start_ns, Nanoseconds end_ns) {
  Record record{.name = std::string(name)};
  record.device = device;
  record.start_ns = start_ns;
  record.end_ns = end_ns;
  return record;
}

TEST(Overheads, AreThoseOfEachDevice) {
  const Overheads overheads = overheads_of(
      measured({op(kTinyOpLabel, 0, 0, 800), op(kTinyOpLabel, 1, 10, 800), op(kTinyOpLabel, 0, 1000, 1800),
                op(kTinyOpLabel, 1, 1010, 1800), op(kQueuedOpLabel, 0, 5000, 5900), op(kQueuedOpLabel, 1, 5000, 5900),
                op(kQueuedOpLabel, 0, 6000, 6900), op(kQueuedOpLabel, 1, 6000, 6900)}));
  EXPECT_DOUBLE_EQ(overheads.op.median, 1e-6);
  EXPECT_DOUBLE_EQ(overheads.in_record_s, 0.9e-6);
  EXPECT_DOUBLE_EQ(overheads.launch.median, 0.5e-6) << "the device is what ops wait for";
}

// A product of 16.8 Mflop in 0.1 us beside the op's own 2 us would have the rate of no device.
TEST(Rates, OfShortProductsAreAtMostThoseOfLongOnes) {
  const GemmShape brief{DType::f32, 8192, 128, 8}, lasting{DType::f32, 2048, 2048, 2048};
  Measurement measurement =
      measured({op(kQueuedOpLabel, 0, 0, 2000), op(kQueuedOpLabel, 0, 2000, 4000), op(kTinyOpLabel, 0, 5000, 7000),
                op(kTinyOpLabel, 0, 8000, 10000), op(label_of(brief), 0, 20000, 22100),
                op(label_of(lasting), 0, 100'000, 602'000)});
  measurement.findings.gemms = {brief, lasting};
  const Rates rates = rates_of(measurement);
  EXPECT_DOUBLE_EQ(rates.gemm.at(lasting).per_s, lasting.flops() / 500e-6);
  EXPECT_DOUBLE_EQ(rates.gemm.at(brief).per_s, rates.gemm.at(lasting).per_s);
}

TEST(Overheads, OfIssuingCountWhereTheyAreWhatOpsWaitFor) {
  const Overheads overheads =
      overheads_of(measured({op(kTinyOpLabel, 0, 0, 800), op(kTinyOpLabel, 0, 7000, 7800),
                             op(kQueuedOpLabel, 0, 50000, 50900), op(kQueuedOpLabel, 0, 51000, 51900)}));
  EXPECT_DOUBLE_EQ(overheads.launch.median, 7e-6);
  EXPECT_DOUBLE_EQ(overheads.op.median, 1e-6);
}

}  // namespace
}  // namespace tandem::calibration
