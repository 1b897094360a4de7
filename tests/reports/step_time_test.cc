#include "reports/timeline/step_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "reports/checks/history.h"
#include "reports/comparison/compare.h"
#include "reports/run/report_json.h"
#include "reports/run/report_text.h"
#include "reports/sweep/sweep_table.h"
#include "tests/reports/testing.h"

namespace tandem {
namespace {

using testing::HasSubstr;

// 48 steps, of which every `period`-th exchanges what the others do not.
std::vector<Nanoseconds> periodic(int period) {
  std::vector<Nanoseconds> lengths;
  for (int step = 1; step <= 48; ++step) lengths.push_back(step % period == 0 ? 347'000'000 : 106'000'000);
  return lengths;
}

Report report_of(const std::vector<Nanoseconds>& lengths) {
  Report report = full_report();
  report.summary.step_time = step_time_of(lengths, true);
  return report;
}

TEST(StepTime, FollowsTheMeanWhereSomeStepsAreLonger) {
  const StepTime fourth = step_time_of(periodic(4), true), third = step_time_of(periodic(3), true);
  EXPECT_EQ(fourth.mean, 166'250'000);
  EXPECT_EQ(third.mean, 186'333'333);
  EXPECT_EQ(fourth.median, third.median) << "which does not tell them apart";
  EXPECT_EQ(fourth.long_steps, (LongSteps{.count = 12, .time = 347'000'000, .others = 106'000'000, .every = 4}));
  EXPECT_EQ(third.long_steps, (LongSteps{.count = 16, .time = 347'000'000, .others = 106'000'000, .every = 3}));
  EXPECT_DOUBLE_EQ(report_of(periodic(4)).throughput(), 64 / 0.16625);
}

TEST(StepTime, IsUnevenBeyondTwoPercent) {
  EXPECT_FALSE(step_time_of({100, 100, 100, 108}, true).is_uneven()) << "2 % above the median";
  EXPECT_TRUE(step_time_of({100, 100, 100, 112}, true).is_uneven());
  EXPECT_TRUE(step_time_of({100, 10, 100, 100, 100}, true).is_uneven()) << "below it";
  EXPECT_FALSE(step_time_of({100, 100, 100}, true).long_steps);
}

TEST(StepTime, GroupsStepsAtTheLeastVarianceWithinGroups) {
  const StepTime time = step_time_of({10, 11, 52, 12, 50, 9, 48, 10}, true);
  EXPECT_EQ(time.long_steps, (LongSteps{.count = 3, .time = 50, .others = 10, .every = 2}));
  EXPECT_EQ(step_time_of({10, 50, 10, 10, 50, 10}, true).long_steps->every, 0) << "a distance that is seen once";
  EXPECT_EQ(step_time_of({50, 10, 11, 52, 12, 50, 9, 10}, true).long_steps->every, 0) << "3 and 2 steps apart";
  EXPECT_EQ(step_time_of({50, 10, 50, 10, 10, 10, 10}, false).long_steps->every, 0) << "their order is unknown";
}

TEST(StepTime, MeanNeitherOverflowsNorDriftsByRounding) {
  constexpr Nanoseconds kLong = 4'000'000'000'000'000'000;
  EXPECT_EQ(step_time_of({kLong, kLong + 1, kLong + 3}, true).mean, kLong + 1);
  EXPECT_EQ(step_time_of({1, 2}, true).mean, 2) << "half up";
}

TEST(StepTime, RunsAreComparedByTheMeanIfHalfOfThemAreUneven) {
  const StepTime even = step_time_of({100, 100, 100}, true), uneven = step_time_of(periodic(4), true);
  EXPECT_EQ(compared_figure(std::vector{even, even}), &StepTime::median);
  EXPECT_EQ(compared_figure(std::vector{even, uneven}), &StepTime::mean);
  EXPECT_EQ(compared_figure(std::vector{even, even, uneven}), &StepTime::median);
  EXPECT_EQ(compared_figure(std::span<const StepTime>{}), &StepTime::median);
  const StepTime late = step_time_of({100, 100, 100, 900}, true);
  EXPECT_TRUE(late.is_uneven());
  EXPECT_EQ(compared_figure(std::vector{even, late}), &StepTime::median) << "one late step is no property of a program";
}

TEST(StepTime, EveryReportShowsTheLongSteps) {
  const std::string steps = "12 of 48 steps take 347.0 ms (every 4th), the others 106.0 ms";
  const Report report = report_of(periodic(4));
  EXPECT_THAT(report_text(report), testing::ContainsRegex("step time +166.2 ms +mean of 48; median 106.0 ms"));
  EXPECT_THAT(report_text(report), HasSubstr(steps + "\n"));
  const Comparison comparison = compare(report, report_of(periodic(3)));
  EXPECT_NEAR(*comparison.figure("step_time").error, 0.1208, 1e-4);
  EXPECT_EQ(*comparison.figure("median_step_time").error, 0);
  const std::string text = comparisons_text({comparison});
  EXPECT_THAT(text, testing::ContainsRegex("median step +106.0 ms +106.0 ms"));
  EXPECT_THAT(text, HasSubstr("measured run: 12 of 48 steps"));
  SweepTable table{.scenario = "s", .engine = "sim", .fields = {}, .points = {swept_point(report, 8)}};
  EXPECT_THAT(sweep_text(table), HasSubstr("166.2 ms (median 106.0 ms)"));
  EXPECT_THAT(sweep_csv(table), HasSubstr(",166250000,106000000,"));
  const HistorySeries series{.launches = {history_launch(report, "", "2026-11-25")}};
  EXPECT_THAT(history_text({series}, 0.03), HasSubstr("median 106.0 ms: " + steps));
}

TEST(StepTime, DocumentsKeepMeanAndLongStepsAndEarlierOnesHaveTheMedianOnly) {
  const Report report = report_of(periodic(4));
  nlohmann::ordered_json document = report_to_json(report);
  EXPECT_EQ(report_from_json(document.dump(), "report").summary.step_time, report.summary.step_time);
  document["step_time_ns"].erase("mean");
  document["step_time_ns"].erase("long_steps");
  EXPECT_EQ(report_from_json(document.dump(), "report").summary.step_time.mean, 106'000'000);
}

}  // namespace
}  // namespace tandem
