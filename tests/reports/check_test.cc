#include "reports/checks/check.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/reports/testing.h"

namespace tandem {
namespace {

using testing::HasSubstr;

Report measured_with(Nanoseconds median, Nanoseconds deviation = 10'000, int samples = 37) {
  Report report = full_report();
  report.summary.step_time.mean = report.summary.step_time.median = median;
  report.summary.step_time.median_absolute_deviation = deviation;
  report.summary.step_time.samples = samples;
  return report;
}

TEST(CheckSimulated, EqualTimesAreOkAndOneNanosecondIsNot) {
  const Report baseline = simulated_report();
  EXPECT_EQ(check(baseline, baseline, {}).verdict, Verdict::ok);
  Report slower = baseline;
  slower.summary.step_time.mean += 1;
  slower.summary.step_time.median += 1;
  EXPECT_EQ(check(slower, baseline, {}).verdict, Verdict::regressed);
  EXPECT_EQ(check(baseline, slower, {}).verdict, Verdict::improved);
  EXPECT_EQ(check(slower, baseline, {.tolerance = 0.001}).verdict, Verdict::ok);
}

TEST(CheckMeasured, ADisturbedRunIsNoRegressionAndADisturbedBaselineNoStandard) {
  const Report baseline = full_report();
  Report slower = baseline;
  slower.summary.step_time.mean = slower.summary.step_time.median *= 2;
  Report disturbed = slower;
  disturbed.machine_use = MachineUse{.cores = 2, .time = 500, .own = 750, .waited = 300, .others = 250};
  const CheckResult result = check(disturbed, baseline, {});
  EXPECT_EQ(result.verdict, Verdict::inconclusive);
  EXPECT_THAT(result.reasons.front(), HasSubstr("the run was disturbed: 25.0 % of the processor time"));
  EXPECT_EQ(check(slower, disturbed, {}).verdict, Verdict::inconclusive);
  EXPECT_EQ(check(baseline, disturbed, {}).verdict, Verdict::inconclusive);
  disturbed.summary.step_time.mean = disturbed.summary.step_time.median = baseline.summary.step_time.median;
  EXPECT_EQ(check(disturbed, baseline, {}).verdict, Verdict::ok) << "in spite of it";
}

TEST(CheckSimulated, RoundingOfAPartIsNoChangeTheOtherWay) {
  const Report baseline = simulated_report();
  Report changed = baseline;
  changed.summary.per_step.compute += 900'000;
  changed.summary.per_step.exposed_input -= 1;
  changed.summary.step_time.mean += 899'999;
  const CheckResult result = check(changed, baseline, {});
  EXPECT_THAT(result.reasons.back(), testing::Not(HasSubstr("because other parts change the other way")));
}

TEST(CheckMeasured, DecidesByExactCountsWhateverTheTimesSay) {
  Report baseline = measured_with(2'000'000);
  baseline.counts = WorkCounts{{"copies of 64 B", 74}, {"op gemm", 37}};
  Report changed = baseline;
  changed.counts = WorkCounts{{"copies of 64 B", 111}, {"op gemm", 37}};
  changed.machine_use = MachineUse{.cores = 2, .time = 500, .own = 750, .waited = 300, .others = 250};
  CheckResult result = check(changed, baseline, {});
  EXPECT_EQ(result.verdict, Verdict::regressed) << "one more copy a step, on a disturbed machine";
  EXPECT_TRUE(result.counts_differ);
  EXPECT_THAT(result.reasons, testing::ElementsAre("the exact counts of the work differ from the baseline's:",
                                                   "copies of 64 B: 2 -> 3 per step"));
  EXPECT_EQ(check(baseline, changed, {}).verdict, Verdict::improved);
  changed.counts = baseline.counts;
  EXPECT_EQ(check(changed, baseline, {}).verdict, Verdict::ok);
  changed.counts = WorkCounts{{"copies of 64 B", 111}, {"op gemm", 37}};
  baseline.asynchronous = changed.asynchronous = true;
  EXPECT_FALSE(check(changed, baseline, {}).counts_differ) << "they depend on the order in which workers came";
}

TEST(CheckSimulated, NamesEveryTimeThatDiffers) {
  const Report baseline = simulated_report();
  Report changed = baseline;
  changed.summary.per_step.compute += 1;
  changed.summary.collectives[0].time_ns = 1;
  const CheckResult result = check(changed, baseline, {});
  EXPECT_EQ(result.verdict, Verdict::regressed);
  std::vector<std::string> names;
  for (const CheckedFigure& figure : result.differences) names.push_back(figure.name);
  EXPECT_THAT(names, testing::ElementsAre("all_reduce 1048576 B x 2", "per_step.compute"));
  EXPECT_THAT(result.reasons.front(), HasSubstr("the step takes as long as before, but its parts do not"));
}

TEST(CheckSimulated, NamesATimeThatIsNoPartOfTheStepWhereNoPartDiffers) {
  const Report baseline = simulated_report();
  Report changed = baseline;
  changed.summary.collectives[0].time_ns = 1;
  const CheckResult result = check(changed, baseline, {});
  ASSERT_TRUE(result.largest_difference);
  EXPECT_EQ(result.largest_difference->name, "all_reduce 1048576 B x 2");
  EXPECT_FALSE(result.largest_share);
}

// Its parts add up to the median, so that neither they nor the mean compare.
TEST(CheckSimulated, ABaselineOfAnEarlierVersionIsComparedByItsMedian) {
  const Report report = simulated_report();
  Report baseline = report;
  baseline.summary.step_time.has_mean = false;
  baseline.summary.step_time.mean = baseline.summary.step_time.median;
  Report uneven = report;
  uneven.summary.step_time.mean += 5'000;
  uneven.summary.per_step.compute += 5'000;
  EXPECT_EQ(check(uneven, baseline, {}).verdict, Verdict::ok);
  uneven.summary.step_time.median += 1;
  EXPECT_EQ(check(uneven, baseline, {}).verdict, Verdict::regressed);
}

TEST(CheckSimulated, GivesNoShareWherePartsChangeAgainstEachOther) {
  const Report baseline = simulated_report();
  Report changed = baseline;
  changed.summary.step_time.mean += 10'000;
  changed.summary.per_step.compute -= 40'000;
  changed.summary.per_step.idle += 50'000;
  const CheckResult opposed = check(changed, baseline, {});
  EXPECT_EQ(opposed.largest_difference->name, "per_step.idle");
  EXPECT_FALSE(opposed.largest_share);
  EXPECT_THAT(opposed.reasons.back(), HasSubstr("(+50.00 us); the step +10.00 us"));
  changed.summary.per_step.compute = baseline.summary.per_step.compute + 2'500;
  changed.summary.per_step.idle = baseline.summary.per_step.idle + 7'500;
  const CheckResult alike = check(changed, baseline, {});
  EXPECT_EQ(alike.largest_difference->name, "per_step.idle");
  EXPECT_DOUBLE_EQ(alike.largest_share.value(), 0.75);
}

TEST(CheckSimulated, NamesTheKeysOfTheScenarioWhereTheyAreKnown) {
  Report other = simulated_report();
  other.scenario_hash = "beef";
  const CheckResult known = check(simulated_report(), other, {}, {"scenario changed: steps 10 -> 20"});
  EXPECT_THAT(known.reasons, testing::Contains("scenario changed: steps 10 -> 20"));
  EXPECT_THAT(known.reasons, testing::Not(testing::Contains(HasSubstr("hash"))));
  EXPECT_THAT(check(simulated_report(), other, {}).reasons, testing::Contains(HasSubstr("content (hash)")));
}

TEST(CheckSimulated, ShowsNanosecondsWhereTextsWouldBeEqual) {
  const Report baseline = simulated_report();
  Report changed = baseline;
  changed.summary.step_time.mean += 1;
  changed.summary.step_time.median += 1;
  changed.summary.per_step.idle += 1;
  const CheckResult result = check(changed, baseline, {});
  EXPECT_THAT(result.reasons.back(), HasSubstr("per_step.idle changed most: 130000 ns -> 130001 ns"));
  const std::string text = check_text(result, changed, baseline);
  EXPECT_THAT(text, HasSubstr("step time 2000001 ns, baseline 2000000 ns (<0.1 %)"));
}

TEST(CheckSimulated, AnotherModelIsNotARegression) {
  const Report baseline = simulated_report();
  Report changed = baseline;
  changed.settings["network/model"] = "LV08";
  EXPECT_EQ(check(changed, baseline, {}).verdict, Verdict::ok) << "equal times are equal, whatever the settings";
  changed.summary.step_time.median *= 2;
  const CheckResult result = check(changed, baseline, {});
  EXPECT_EQ(result.verdict, Verdict::model_changed);
  EXPECT_THAT(result.reasons, testing::Contains("network/model is 'LV08', in the baseline 'CM02'"));
}

TEST(Check, ABaselineOfAnotherJobSaysNothingAboutThisOne) {
  Report other = simulated_report();
  other.scenario_hash = "beef";
  const CheckResult result = check(simulated_report(), other, {});
  EXPECT_EQ(result.verdict, Verdict::model_changed);
  EXPECT_EQ(result.reasons.front(), "the baseline is of another job:");
  EXPECT_FALSE(result.largest_difference) << "its times are the same";
  Report changed = simulated_report();
  changed.summary.step_time.mean += 1'000;
  changed.summary.step_time.median += 1'000;
  changed.summary.per_step.compute += 1'000;
  const CheckResult differs = check(changed, other, {});
  EXPECT_EQ(differs.verdict, Verdict::model_changed);
  ASSERT_TRUE(differs.largest_difference);
  EXPECT_EQ(differs.largest_difference->name, "per_step.compute");
  EXPECT_THAT(differs.reasons.back(),
              HasSubstr("per_step.compute changed most: 1.200 ms -> 1.201 ms (+1.000 us), 100.0 % of"));
  EXPECT_EQ(check(simulated_report(), full_report(), {}).verdict, Verdict::model_changed) << "another engine";
}

// One launch on each side proves nothing: launches of one program differ by more than the steps of one launch.
TEST(CheckMeasured, AChangeBeyondToleranceAndNoiseIsAQuestionForMoreLaunches) {
  const Report baseline = measured_with(1'000'000);  // 1 % deviation on both sides: noise 1.41 %
  EXPECT_EQ(check(measured_with(1'029'000), baseline, {}).verdict, Verdict::ok);
  EXPECT_EQ(check(measured_with(1'040'000), baseline, {}).verdict, Verdict::inconclusive);
  for (const Nanoseconds median : {940'000, 1'060'000}) {
    const CheckResult result = check(measured_with(median), baseline, {});
    EXPECT_EQ(result.verdict, Verdict::inconclusive);
    EXPECT_THAT(result.reasons.front(), HasSubstr("--against compares launches"));
  }
  EXPECT_EQ(check(measured_with(1'060'000), baseline, {.tolerance = 0.1}).verdict, Verdict::ok);
}

TEST(CheckMeasured, ABaselineOfAnotherMachineSaysNothing) {
  Report other = measured_with(1'000'000);
  other.machine = "another processor";
  const CheckResult result = check(measured_with(1'000'000), other, {});
  EXPECT_EQ(result.verdict, Verdict::model_changed);
  EXPECT_THAT(result.reasons, testing::Contains(HasSubstr("in the baseline 'another processor'")));
}

TEST(CheckMeasured, FewStepsAreInconclusive) {
  const CheckResult result = check(measured_with(5'000'000, 10'000, 8), measured_with(1'000'000), {});
  EXPECT_EQ(result.verdict, Verdict::inconclusive);
  EXPECT_EQ(result.reasons.front(), "too few steps: 8 now and 37 in the baseline; at least 9 are needed");
}

TEST(Check, ABudgetIsARegressionWhateverTheBaselineSays) {
  const Report report = simulated_report();
  EXPECT_EQ(check(report, report, {.max_step_time_ns = 2'000'000}).verdict, Verdict::ok);
  const CheckResult result = check(report, report, {.max_step_time_ns = 1'999'999});
  EXPECT_EQ(result.verdict, Verdict::regressed);
  EXPECT_EQ(result.reasons.front(), "the step takes 2.000 ms, over its budget of 2.000 ms");
}

TEST(CheckText, ALongTableIsShortened) {
  Report baseline = simulated_report();
  for (int i = 0; i < 40; ++i) {
    CollectiveSummary one = baseline.summary.collectives[0];
    one.bytes = 1024 + i;
    baseline.summary.collectives.push_back(one);
  }
  Report changed = baseline;
  for (CollectiveSummary& one : changed.summary.collectives) one.time_ns += 1;
  const CheckResult result = check(changed, baseline, {});
  EXPECT_EQ(result.differences.size(), 41U);
  EXPECT_THAT(check_text(result, changed, baseline), HasSubstr("  ... and 29 more (--json)\n"));
}

TEST(CheckText, SaysTheVerdictAndWhatDiffers) {
  const Report baseline = simulated_report();
  Report slower = baseline;
  slower.summary.step_time.mean = slower.summary.step_time.median = 3'000'000;
  const CheckResult result = check(slower, baseline, {});
  const std::string text = check_text(result, slower, baseline);
  EXPECT_THAT(text, HasSubstr(": regressed\n"));
  EXPECT_THAT(text, testing::ContainsRegex("step_time.median +2.000 ms +3.000 ms +\\+50.0 %"));
  const auto json = check_to_json(result, slower, baseline);
  EXPECT_EQ(json["verdict"], "regressed");
  EXPECT_EQ(json["differences"][0]["current_ns"], 3'000'000);
}

}  // namespace
}  // namespace tandem
