// Strategies side by side: what the errors come to, in which order they are, and the texts and documents about it.
#include "reports/comparison/strategy_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "reports/pages/page.h"
#include "reports/stored_text.h"
#include "tests/reports/testing.h"

namespace tandem {
namespace {

using testing::HasSubstr;

Comparison run_of(const std::string& strategy, int devices, Nanoseconds measured, Nanoseconds predicted,
                  Nanoseconds deviation = 0) {
  Report was, is;
  for (Report* report : {&was, &is}) {
    report->scenario = "small";
    report->strategy = strategy;
    report->cross_device_ops = "collective";
    report->devices = devices;
    report->cores = SharedCores{.devices = devices, .cores = 2};
  }
  was.engine = "cpu";
  is.engine = "sim";
  is.deterministic = true;
  for (const auto& [report, time] : {std::pair{&was, measured}, {&is, predicted}}) {
    StepTime& step = report->summary.step_time;
    step.mean = step.median = time;
    step.samples = 10;
    report->summary.per_step = {.compute = 1000, .idle = time - 1000};
  }
  was.summary.step_time.median_absolute_deviation = deviation;
  return compare(was, is);
}

std::vector<Comparison> four_runs() {
  return {run_of("mirrored", 4, 8'000, 6'000), run_of("one_device", 1, 10'000, 10'000),
          run_of("mirrored", 2, 6'000, 6'600), run_of("sharded", 2, 7'000, 6'500)};
}

TEST(StrategyComparison, TellsErrorsWithAndWithoutACoreForEachDevice) {
  const StrategySummary summary = summary_of(four_runs());
  EXPECT_EQ(summary.enough_cores.count, 3U);
  EXPECT_NEAR(summary.enough_cores.mean, (0 + 0.1 + 0.5 / 7) / 3, 1e-12);
  EXPECT_NEAR(summary.enough_cores.worst, 0.1, 1e-12);
  EXPECT_EQ(summary.short_of_cores.count, 1U);
  EXPECT_NEAR(summary.short_of_cores.worst, 0.25, 1e-12);
  EXPECT_NEAR(summary.parts.worst, 0.25, 1e-12) << "all of the difference is idle";
}

TEST(StrategyComparison, SpeedUpsAreThoseOverOneDevice) {
  const StrategySummary summary = summary_of(four_runs());
  EXPECT_EQ(summary.speed_ups.count, 3U);
  EXPECT_NEAR(summary.speed_ups.worst, (10.0 / 6) / (10.0 / 8) - 1, 1e-12);
  EXPECT_EQ(summary_of({run_of("mirrored", 2, 6'000, 6'600)}).speed_ups.count, 0U) << "there is none on one device";
}

TEST(StrategyComparison, PairsAreOfEquallyManyDevices) {
  const StrategySummary summary = summary_of(four_runs());
  EXPECT_EQ(summary.pairs, 1);
  EXPECT_THAT(summary.reversed, testing::ElementsAre("sharded before mirrored on 2 devices"));
  EXPECT_EQ(summary_of({run_of("a", 2, 6'000, 1, 500), run_of("b", 2, 6'900, 0, 500)}).pairs, 0)
      << "they differ by less than the noise of both";
}

TEST(StrategyComparison, SortsByDevicesThenByTime) {
  std::vector<Comparison> runs = four_runs();
  sort_by_time(runs);
  EXPECT_THAT(strategy_labels(runs), testing::ElementsAre("one_device", "mirrored", "sharded", "mirrored"));
}

TEST(StrategyComparison, NamesTheWayToCombineWhereThereAreSeveral) {
  std::vector<Comparison> runs = {run_of("mirrored", 2, 1'000, 1'000), run_of("mirrored", 2, 2'000, 2'000),
                                  run_of("mirrored", 4, 2'000, 2'000)};
  runs[1].measured.cross_device_ops = "hierarchical_copy";
  EXPECT_THAT(strategy_labels(runs),
              testing::ElementsAre("mirrored, collective", "mirrored, hierarchical_copy", "mirrored"));
}

Comparison disturbed_run() {
  Comparison run = run_of("mirrored", 2, 6'000, 6'600);
  run.measured.machine_use = MachineUse{.cores = 2, .time = 500, .own = 750, .waited = 300, .others = 250};
  return compare(run.measured, run.predicted);
}

TEST(StrategyComparison, DisturbedRunsDoNotCount) {
  const StrategySummary summary = summary_of({disturbed_run(), run_of("sharded", 2, 700, 650)});
  EXPECT_EQ(summary.enough_cores.count, 1U);
  EXPECT_EQ(summary.pairs, 0);
}

TEST(StrategyComparison, TheTextHasARowForEachRunAndTheSummary) {
  std::vector<Comparison> runs = four_runs();
  runs.push_back(disturbed_run());
  sort_by_time(runs);
  const std::string text =
      strategy_comparison_text({.comparisons = runs, .left_out = {"pipeline on 4 devices: too few layers"}});
  EXPECT_THAT(text,
              testing::StartsWith("small: time of a step with every strategy, measured (cpu) and simulated (sim)\n"));
  EXPECT_THAT(text, testing::ContainsRegex("\nmirrored +4 +8.000 us +6.000 us +-25.0 % +0.0 % +idle -25.0 %\n"));
  EXPECT_THAT(text, testing::ContainsRegex("\nmirrored +2 .* disturbed .* -\n"));
  EXPECT_THAT(text, HasSubstr("error of the step: mean 5.7 %, worst 10.0 % in 3 runs with a core for each device\n"));
  EXPECT_THAT(text, HasSubstr("error of the step: mean 25.0 %, worst 25.0 % in 1 run with more devices than cores\n"));
  EXPECT_THAT(text, HasSubstr("0 of 1 pairs of strategies"));
  EXPECT_THAT(text, HasSubstr("not: sharded before mirrored on 2 devices\n"));
  EXPECT_THAT(text, HasSubstr("DISTURBED: 1 of 5 runs, which show no error\n"));
  EXPECT_THAT(text, HasSubstr("left out    pipeline on 4 devices: too few layers\n"));
}

TEST(StrategyComparison, ADocumentHasTheSameText) {
  const StrategyComparison strategies{.comparisons = {run_of("mirrored", 2, 6'000, 6'600), disturbed_run()},
                                      .left_out = {"why"}};
  const nlohmann::ordered_json document = strategy_comparison_to_json(strategies);
  EXPECT_EQ(document["kind"], "strategy_comparison");
  EXPECT_EQ(stored_text(document, "all.json", false), strategy_comparison_text(strategies));
}

TEST(StrategyComparison, ThePageHasABarForEachRunAndOneForItsPrediction) {
  const std::string page = page_of(
      strategy_comparison_to_json({.comparisons = {run_of("mirrored", 2, 6'000, 6'600)}, .left_out = {"a < b"}}),
      "all.json");
  EXPECT_THAT(page, HasSubstr("mirrored on 2"));
  EXPECT_THAT(page, HasSubstr("simulated"));
  EXPECT_THAT(page, HasSubstr("a &lt; b"));
  EXPECT_THAT(page, HasSubstr("error of the step: mean 10.0 %"));
}

}  // namespace
}  // namespace tandem
