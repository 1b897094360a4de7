#include "reports/comparison/compare.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "tests/reports/testing.h"

namespace tandem {
namespace {

using testing::HasSubstr;

// 10 % slower steps, communication at half the time, one collective of its own.
Comparison off_by_some() {
  Report predicted = simulated_report();
  predicted.summary.step_time.mean = predicted.summary.step_time.median = 2'200'000;
  predicted.summary.per_step.communication = 350'000;
  predicted.summary.per_step.input = 0;
  predicted.summary.collectives[0].time_ns = 165'000;
  predicted.summary.collectives.push_back(
      {.operation = "broadcast", .bytes = 64, .devices = 2, .calls_per_step = 1, .time_ns = 100});
  predicted.loss = {2.25, 0.1001};
  predicted.notes = {"extrapolated: all_reduce beyond 64 MB"};
  return compare(full_report(), predicted);
}

TEST(Compare, ErrorsAreRelativeToTheMeasurement) {
  const Comparison comparison = off_by_some();
  EXPECT_NEAR(comparison.figure("step_time").error.value(), 0.1, 1e-12);
  EXPECT_NEAR(comparison.figure("throughput").error.value(), 1 / 1.1 - 1, 1e-12);
  EXPECT_NEAR(comparison.figure("communication").error.value(), -0.5, 1e-12);
  EXPECT_NEAR(comparison.figure("input").error.value(), -1, 1e-12);
  EXPECT_EQ(comparison.figure("compute").error.value(), 0);
  EXPECT_NEAR(comparison.noise, 0.02, 1e-12);
}

TEST(Compare, HasNoErrorWhereNothingWasMeasured) {
  Report measured = full_report();
  measured.summary.per_step.update = 0;
  EXPECT_EQ(compare(measured, simulated_report()).figure("update").error, std::nullopt);
}

TEST(Compare, MatchesCollectivesByOperationBytesAndDevices) {
  const Comparison comparison = off_by_some();
  ASSERT_EQ(comparison.collectives.size(), 1u);
  EXPECT_NEAR(comparison.collectives[0].error.value(), 0.1, 1e-12);
  EXPECT_THAT(comparison.notes,
              testing::ElementsAre("broadcast of 64 bytes between 2 devices is in the predicted run only"));
}

TEST(Compare, SumsUpCollectivesInSizeBands) {
  Report measured = full_report();
  Report predicted = simulated_report();
  measured.summary.collectives.clear();
  predicted.summary.collectives.clear();
  const auto add = [&](std::int64_t bytes, Nanoseconds predicted_ns) {
    measured.summary.collectives.push_back({.operation = "all_reduce", .bytes = bytes, .devices = 2, .time_ns = 1000});
    predicted.summary.collectives.push_back(
        {.operation = "all_reduce", .bytes = bytes, .devices = 2, .time_ns = predicted_ns});
  };
  add(64, 1500);
  add(65535, 900);
  add(65536, 1200);
  add(std::int64_t{1} << 40, 1000);
  const Comparison comparison = compare(measured, predicted);
  ASSERT_EQ(comparison.bands.size(), 3u);
  EXPECT_EQ(comparison.bands[0].count, 2);
  EXPECT_NEAR(comparison.bands[0].median_error, 0.3, 1e-12);  // of 0.5 and 0.1
  EXPECT_NEAR(comparison.bands[0].p95_error, 0.5, 1e-12);
  EXPECT_EQ(comparison.bands[1].from_bytes, 65536);
  EXPECT_NEAR(comparison.bands[1].median_error, 0.2, 1e-12);
  EXPECT_EQ(comparison.bands[2].from_bytes, 1 << 26);
}

TEST(Compare, LossIsTheLargestRelativeDifferenceOfCommonSteps) {
  EXPECT_NEAR(off_by_some().loss_max_relative_difference.value(), 0.001, 1e-9);
  Report without = simulated_report();
  without.loss.clear();
  EXPECT_EQ(compare(full_report(), without).loss_max_relative_difference, std::nullopt);
}

TEST(Compare, SaysWhatIsNotTheSameJob) {
  Report predicted = simulated_report();
  predicted.replicas = 4;
  EXPECT_THAT(compare(full_report(), predicted).notes,
              testing::Contains("the number of replicas differs: measured '2', predicted '4'"));
}

Report disturbed_report() {
  Report report = full_report();
  report.machine_use = MachineUse{.cores = 2, .time = 500, .own = 750, .waited = 300, .others = 250};
  return report;
}

TEST(Compare, ADisturbedMeasurementHasNoErrors) {
  for (const Comparison& comparison : {compare(disturbed_report(), simulated_report()),
                                       compare(full_report(), simulated_report(),
                                               "25.0 % of the processor time that the run asked for went elsewhere")}) {
    ASSERT_FALSE(comparison.disturbance.empty());
    for (const ComparedFigure& figure : comparison.figures) EXPECT_EQ(figure.error, std::nullopt) << figure.name;
    EXPECT_EQ(comparison.collectives.at(0).error, std::nullopt);
    EXPECT_THAT(comparison.bands, testing::IsEmpty());
    const std::string text = comparisons_text({comparison});
    EXPECT_THAT(text,
                testing::StartsWith("DISTURBED: 25.0 % of the processor time that the run asked for went elsewhere."));
    EXPECT_THAT(comparisons_text({comparison}, true), testing::StartsWith("DISTURBED: "));
    EXPECT_THAT(comparisons_text({comparison, comparison}),
                testing::StartsWith("DISTURBED: 2 of 2 runs, which show no error\n"));
  }
}

TEST(Compare, ADocumentSaysOfTheRunAndOfTheCalibrationWhatDisturbedThem) {
  const std::string calibration = "while the machine was calibrated, 30.0 % of the time went elsewhere";
  for (const Comparison& comparison :
       {compare(disturbed_report(), simulated_report()), compare(disturbed_report(), simulated_report(), calibration),
        compare(full_report(), simulated_report(), calibration)}) {
    nlohmann::ordered_json document = comparisons_to_json({comparison});
    EXPECT_EQ(comparisons_text(comparisons_from_json(document, "now.json")), comparisons_text({comparison}));
    document["comparisons"][0].erase("calibration_disturbance");
    EXPECT_EQ(comparisons_text(comparisons_from_json(document, "earlier.json")), comparisons_text({comparison}));
  }
}

// The step is 0.2 of 2 ms longer than measured.
TEST(Compare, SaysWhetherTheErrorIsUsual) {
  Report predicted = simulated_report();
  predicted.summary.step_time.mean = 2'200'000;
  predicted.summary.per_step.compute += 200'000;
  EXPECT_EQ(is_usual(compare(full_report(), predicted)), std::nullopt) << "no band is known";
  for (const auto& [band, usual] : {std::pair{0.15, true}, {0.05, false}}) {
    predicted.expected_error = ErrorBand{.intervals = {{.low = -band, .high = band}}, .basis = "12 comparisons"};
    const Comparison comparison = compare(full_report(), predicted);
    EXPECT_EQ(is_usual(comparison), usual);
    EXPECT_THAT(
        comparisons_text({comparison}),
        HasSubstr(usual ? "+10.0 % is within the usual -13..+18 % of 12 comparisons; compute decides it: +10.0 %"
                        : "+10.0 % is outside the usual -5..+5 % of 12 comparisons; compute decides it:"));
    EXPECT_EQ(comparisons_to_json({comparison})["comparisons"][0]["is_usual"], usual);
  }
}

TEST(Compare, NamesThePartThatDecidesTheError) {
  Report measured = full_report(), predicted = simulated_report();
  measured.summary.step_time.mean = 1'000;
  measured.summary.per_step = {.compute = 600, .update = 100, .idle = 300};
  predicted.summary.step_time.mean = 900;
  predicted.summary.per_step = {.compute = 800, .update = 50, .idle = 50};
  const std::optional<DecidingPart> part = deciding_part(compare(measured, predicted));
  ASSERT_TRUE(part);
  EXPECT_EQ(part->name, "idle") << "compute differs by as much, but the other way";
  EXPECT_NEAR(part->of_step, -0.25, 1e-12);
  measured.cores = SharedCores{.devices = 4, .cores = 2};
  EXPECT_THAT(comparisons_text({compare(measured, predicted)}),
              HasSubstr("idle decides the error: -25.0 % of the step; 4 devices on 2 cores\n"));
  predicted.summary = measured.summary;
  EXPECT_EQ(deciding_part(compare(measured, predicted)), std::nullopt);
}

TEST(Compare, SaysWhichCollectivesLieOutsideTheCalibration) {
  Report predicted = simulated_report();
  EXPECT_EQ(compare(full_report(), predicted).collectives.at(0).is_extrapolated, std::nullopt) << "there is none";
  const CollectiveSummary one = predicted.summary.collectives.at(0);
  const CalibratedRange range{
      .operation = one.operation, .devices = one.devices, .from_bytes = one.bytes, .to_bytes = one.bytes};
  predicted.calibrated = {range};
  EXPECT_EQ(compare(full_report(), predicted).collectives.at(0).is_extrapolated, false);
  predicted.calibrated[0].from_bytes = one.bytes + 1;
  EXPECT_EQ(compare(full_report(), predicted).collectives.at(0).is_extrapolated, true);
  predicted.calibrated[0] = range;
  ++predicted.calibrated[0].devices;
  const Comparison comparison = compare(full_report(), predicted);
  EXPECT_EQ(comparison.collectives.at(0).is_extrapolated, true);
  EXPECT_EQ(comparisons_to_json({comparison})["comparisons"][0]["collectives"][0]["extrapolated"], true);
}

TEST(CompareText, ShowsTheHeadlineOfMeasuredSimulatedAndError) {
  const std::string text = comparisons_text({off_by_some()});
  EXPECT_THAT(text, HasSubstr("measured (cpu)"));
  EXPECT_THAT(text, HasSubstr("simulated (sim)"));
  EXPECT_THAT(text, testing::ContainsRegex("step time +2.000 ms +2.200 ms +\\+10.0 %"));
  EXPECT_THAT(text, testing::ContainsRegex("throughput .* -9.1 %"));
  EXPECT_THAT(text, testing::ContainsRegex("  exposed communication +"));
  EXPECT_THAT(text, HasSubstr("noise of the measured run: 2.0 % of its step time"));
  EXPECT_THAT(text, HasSubstr("network/model CM02"));
  EXPECT_THAT(text, HasSubstr("extrapolated: all_reduce beyond 64 MB"));
  EXPECT_THAT(text, testing::Not(HasSubstr("all_reduce 1 MiB x 2")));
}

TEST(CompareText, ShowsEveryPartAndCollectiveWithDetails) {
  const std::string text = comparisons_text({off_by_some()}, true);
  EXPECT_THAT(text, testing::ContainsRegex("communication, hidden or not +700.0 us +350.0 us +-50.0 %"));
  EXPECT_THAT(text, testing::ContainsRegex("  exposed communication +"));
  EXPECT_THAT(text, testing::ContainsRegex("  exposed input +"));
  EXPECT_THAT(text, testing::ContainsRegex("all_reduce 1 MiB x 2 +150.0 us +165.0 us +\\+10.0 %"));
  EXPECT_THAT(text, testing::Not(HasSubstr("left out")));
}

// Steps of 2 ms and 1 ms: a part is in the headline from 200 us measured or 100 us predicted.
TEST(CompareText, LeavesOutPartsBelowATenthOfTheStepInBothRuns) {
  Report measured = full_report();
  Report predicted = simulated_report();
  measured.summary.step_time.mean = measured.summary.step_time.median = 2'000'000;
  predicted.summary.step_time.mean = predicted.summary.step_time.median = 1'000'000;
  measured.summary.per_step = {.compute = 200'000, .update = 0, .exposed_input = 199'999, .idle = 1'600'001};
  predicted.summary.per_step = {.compute = 0, .update = 100'000, .exposed_input = 99'999, .idle = 800'001};
  const std::string text = comparisons_text({compare(measured, predicted)});
  EXPECT_THAT(text,
              testing::ContainsRegex("\n  compute +200.0 us +0 +-100.0 % +-10.0 %\n"));  // of the error; of the step
  EXPECT_THAT(text, testing::ContainsRegex("\n  update +0 +100.0 us +- +\\+5.0 %\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("\n  exposed input ")));
  EXPECT_THAT(text, testing::ContainsRegex("\n  idle +1.600 ms +800.0 us +-50.0 % +-40.0 %\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("communication")));  // takes no time in either
  EXPECT_THAT(text, HasSubstr("left out (see --details), below 10 % of the step in both runs: exposed input\n"));
}

TEST(CompareText, ShowsARowForEachOfSeveralAndTheHeadlineOfTheLast) {
  Comparison one = off_by_some();
  one.measured.replicas = 1;
  const std::string text = comparisons_text({one, off_by_some()});
  EXPECT_THAT(text, testing::ContainsRegex("\n1 +reduction_to_one_device +2.000 ms +2.200 ms +\\+10.0 % +2.0 %"));
  EXPECT_THAT(text, HasSubstr("step time: median |error| 10.0 %, largest 10.0 % over 2 runs"));
  const auto tables = [](const std::string& whole) {
    int count = 0;
    for (std::size_t at = whole.find("\nthroughput"); at != std::string::npos;
         at = whole.find("\nthroughput", at + 1)) {
      ++count;
    }
    return count;
  };
  EXPECT_EQ(tables(text), 1);
  EXPECT_EQ(tables(comparisons_text({one, off_by_some()}, true)), 2);
}

TEST(CompareJson, HoldsBothReportsAndTheErrorOfEachFigure) {
  const auto json = comparisons_to_json({off_by_some()});
  EXPECT_EQ(json["kind"], "comparison");
  const auto& comparison = json["comparisons"][0];
  EXPECT_EQ(comparison["measured"]["engine"], "cpu");
  EXPECT_EQ(comparison["predicted"]["engine"], "sim");
  EXPECT_NEAR(comparison["errors"]["step_time"].get<double>(), 0.1, 1e-12);
  EXPECT_EQ(comparison["collectives"][0]["predicted_ns"], 165'000);
  EXPECT_EQ(comparison["size_bands"][0]["count"], 1);
}

}  // namespace
}  // namespace tandem
