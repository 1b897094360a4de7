#include "reports/run/expectation.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "reports/errors/known_errors.h"
#include "reports/run/explanation_text.h"
#include "reports/run/report_json.h"
#include "reports/run/report_text.h"
#include "tests/reports/testing.h"

namespace tandem {
namespace {

using testing::HasSubstr;

Report predicted_report() {
  Report report = simulated_report();
  report.topology = "machine.yaml";
  report.topology_provenance = "measured";
  report.expected_error = error_band_of({.figures = FigureBasis::calibrated, .on_gpus = false});
  return report;
}

TEST(Expectation, NamesTheTermThatExplainsMostOfTheGap) {
  Report measured = full_report();
  measured.summary.step_time.mean = measured.summary.step_time.median = 2'200'000;
  measured.summary.per_step.compute += 50'000;
  measured.summary.per_step.idle += 150'000;
  const Expectation slower = expectation_of(measured, predicted_report());
  EXPECT_EQ(slower.step_time, 2'000'000);
  EXPECT_NEAR(slower.gap_of(2'200'000), 0.1, 1e-12);
  EXPECT_EQ(slower.is_normal(2'200'000), true);
  EXPECT_EQ(slower.is_normal(2'500'000), false);
  EXPECT_EQ(slower.largest->name, "idle and launches");
  EXPECT_EQ(slower.largest->time, 150'000);

  measured.summary.step_time.mean = measured.summary.step_time.median = 1'900'000;
  measured.summary.per_step = predicted_report().summary.per_step;
  measured.summary.per_step.compute -= 200'000;
  measured.summary.per_step.idle += 100'000;
  EXPECT_EQ(expectation_of(measured, predicted_report()).largest->name, "compute efficiency");
  EXPECT_EQ(expectation_of(measured, predicted_report()).largest->time, -200'000);
  EXPECT_FALSE(expectation_of(predicted_report(), predicted_report()).largest.has_value());
}

TEST(Expectation, SplitsExposedCommunicationBySkew) {
  Report measured = full_report();
  measured.summary.step_time.mean += 100'000;
  measured.summary.step_time.median += 100'000;
  measured.summary.per_step.exposed_communication += 100'000;
  EXPECT_EQ(expectation_of(measured, predicted_report()).largest->name, "exposed communication");
  measured.summary.ranks = {{.device = "a", .waiting = 0}, {.device = "b", .waiting = 160'000}};
  const Expectation expectation = expectation_of(measured, predicted_report());
  EXPECT_EQ(expectation.largest->name, "skew");
  EXPECT_EQ(expectation.largest->time, 80'000);
}

TEST(ErrorBand, IsThatOfWhatWasComparedAndUnknownOtherwise) {
  const auto band = [](FigureBasis figures, const char* strategy, int devices, int nodes) {
    const PredictionKind kind{.figures = figures, .strategy = strategy, .devices = devices, .nodes = nodes};
    const ErrorBand found = error_band_of(kind);
    return found.intervals.empty() ? 0.0 : found.intervals.front().high - found.intervals.front().low;
  };
  constexpr auto kStated = FigureBasis::stated, kFitted = FigureBasis::fitted;
  EXPECT_GT(band(kStated, "replicas", 8, 1), band(kFitted, "replicas", 8, 1));
  EXPECT_GT(band(kStated, "replicas", 16, 2), band(kStated, "replicas", 8, 1));
  EXPECT_LT(band(kStated, "mesh", 16, 2), band(kStated, "replicas", 16, 2));
  EXPECT_EQ(band(kStated, "mesh", 1, 1), band(kStated, "replicas", 1, 1));
  EXPECT_GT(band(kStated, "servers", 2, 2), band(kStated, "replicas", 16, 2));
  EXPECT_LT(band(kFitted, "servers", 2, 2), band(kStated, "servers", 2, 2));
  EXPECT_EQ(band(kFitted, "replicas", 1, 1), band(kStated, "replicas", 1, 1)) << "that device was fitted";
  EXPECT_EQ(band(kStated, "", 8, 1), 0);

  PredictionKind other{.strategy = "replicas", .devices = 2, .on_gpus = false};
  EXPECT_TRUE(error_band_of(other).intervals.empty()) << "CPU devices of a catalog";
  other = {.strategy = "replicas", .devices = 2, .is_layers = false};
  EXPECT_TRUE(error_band_of(other).intervals.empty()) << "no table of layers";
  EXPECT_THAT(error_band_of(other).basis, HasSubstr("no prediction of such a workload"));
  other.figures = FigureBasis::calibrated;
  other.on_gpus = false;
  EXPECT_THAT(error_band_of(other).basis,
              HasSubstr("comparisons on a calibrated machine, with no more CPU devices than cores"));
  const std::vector<ErrorInterval> enough = error_band_of(other).intervals;
  other.is_short_of_cores = true;
  EXPECT_THAT(error_band_of(other).basis, HasSubstr("with more CPU devices than cores"));
  EXPECT_NE(error_band_of(other).intervals, enough);
}

TEST(KnownErrors, AreWhatTheFileSays) {
  EXPECT_EQ(known_errors_to_json(known_errors()), parse_json(error_bands_file(), "error_bands.json"));
  const GroupErrors first = known_errors().published.at(0);
  EXPECT_EQ(errors_of(first.of, first.figures)->intervals, first.intervals);
  const KnownErrors errors{.published = {{.rows = 9, .intervals = {{.low = -0.25849, .high = 0.3}}}}};
  EXPECT_EQ(known_errors_to_json(errors)["published"][0]["intervals"][0]["low"], -0.258) << "as tables print it";
}

TEST(KnownErrors, AreOfEachKindOfCollective) {
  for (const PredictionRows& of : all_prediction_rows()) {
    if (!is_of_collectives(of.group)) continue;
    for (const FigureBasis figures : {FigureBasis::stated, FigureBasis::calibrated}) {
      const ErrorBand band = error_band_of(of, figures);
      ASSERT_NE(band.widest(), nullptr) << name_of(of);
      EXPECT_THAT(band.basis, HasSubstr("published times of "));
      EXPECT_THAT(band.basis, testing::EndsWith(name_of(figures)));
    }
  }
}

TEST(KnownErrors, ThatAreWrongAreRefused) {
  const auto problem_of = [](const auto& change) {
    nlohmann::ordered_json document = known_errors_to_json(known_errors());
    change(document);
    try {
      known_errors_from_json(document, "bands.json");
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(problem_of([](auto&) {}), "");
  EXPECT_THAT(problem_of([](auto& document) { document["kind"] = "poem"; }), HasSubstr("kind: must be 'error_bands'"));
  EXPECT_THAT(problem_of([](auto& document) { document["published"][0]["of"] = "poets"; }),
              HasSubstr("published[0].of: 'poets' is no group of predictions"));
  EXPECT_THAT(problem_of([](auto& document) { document["published"][0]["intervals"][0]["level"] = 1; }),
              HasSubstr("published[0].intervals[0].level: must be between 0 and 1"));
  EXPECT_THAT(problem_of([](auto& document) { document["calibrated"][0]["p95"] = 0; }),
              HasSubstr("calibrated[0].p95: must be greater than 0"));
}

TEST(ReportJson, GivesBackTheErrorOfPredictions) {
  Report report = simulated_report();
  EXPECT_FALSE(report_to_json(report).contains("expected_error"));
  EXPECT_EQ(expectation_text(report), "") << "the document is of an earlier version";
  for (const ErrorBand& band : {ErrorBand{.intervals = {{.level = 0.8, .low = -0.1, .high = 0.25}}, .basis = "guesses"},
                                ErrorBand{.basis = "nothing"}}) {
    report.expected_error = band;
    EXPECT_EQ(report_from_json(report_to_json(report).dump(), "again").expected_error, band);
  }
  report.memory_error = ErrorBand{.intervals = {{.level = 0.667, .low = -0.04, .high = 0.03}}, .basis = "31 peaks"};
  report.memory = MemoryNeed{.parameters = 1'000'000};
  EXPECT_EQ(report_from_json(report_to_json(report).dump(), "again").memory_error, report.memory_error);
  EXPECT_THAT(report_text(report), HasSubstr("-4..+3 % of predicted ones: 31 peaks"));
  nlohmann::ordered_json document = report_to_json(report);
  EXPECT_TRUE(document["expected_error"]["intervals"].empty());
  document["expected_error"] = {{"relative", 0.25}, {"basis", "an earlier version"}};
  EXPECT_EQ(report_from_json(document.dump(), "again").expected_error->intervals,
            std::vector<ErrorInterval>{interval_of_error(0.25)});
  EXPECT_THAT(expectation_text(report), HasSubstr("unknown   no band is known: nothing"));
}

TEST(NormalText, SaysWhetherARunIsNormal) {
  const std::string band = interval_text(*predicted_report().expected_error->widest());
  Report measured = full_report();
  measured.summary.step_time.mean = measured.summary.step_time.median = 2'200'000;
  measured.summary.per_step.idle += 200'000;
  EXPECT_THAT(expectation_text(measured), HasSubstr("needs --topology FILE"));
  measured.expectation = expectation_of(measured, predicted_report());
  EXPECT_THAT(expectation_text(measured), HasSubstr("+10.0 % from it, within the model's " + band));
  EXPECT_THAT(expectation_text(measured), HasSubstr("of these +200.0 us, idle and launches explains +200.0 us"));
  measured.summary.step_time.mean = measured.summary.step_time.median = 3'000'000;
  EXPECT_THAT(expectation_text(measured), HasSubstr("OUTSIDE the model's " + band));
  measured.machine_use = MachineUse{.cores = 2, .time = 500, .own = 750, .waited = 300, .others = 250};
  EXPECT_THAT(expectation_text(measured), HasSubstr("not compared, for the run was disturbed"));
  EXPECT_TRUE(report_to_json(measured)["expectation"]["gap"].is_null());
  EXPECT_THAT(expectation_text(predicted_report()),
              HasSubstr(band + "   19 of 20 measured were within that of predicted: "));
}

TEST(ReportJson, GivesBackWhatIsExpectedAndWhoWaits) {
  Report report = full_report();
  report.machine = "a processor (2 cores)";
  report.expectation = Expectation{.topology = "machine.yaml",
                                   .step_time = 5,
                                   .band = {.intervals = {{.low = -0.1, .high = 0.25}}, .basis = "guesses"},
                                   .largest = GapTerm{.name = "input", .time = -7}};
  report.summary.ranks = {{.device = "a", .devices = 3, .waiting = 6, .transfer = 2, .caused = 4, .comes_last = 0.5},
                          {.device = "b"}};
  report.summary.critical_path = CriticalPath{.step = 4,
                                              .compute = 1,
                                              .update = 2,
                                              .input = 3,
                                              .communication = 5,
                                              .other = 6,
                                              .idle = 7,
                                              .begins_on = "a",
                                              .ends_on = "b"};
  report.summary.collectives[0].waiting_ns = 9;
  report.summary.collectives[0].ranks = {{0, 1, 2}, {1, 3, 4}};
  const auto json = report_to_json(report);
  const Report again = report_from_json(json.dump(), "again");
  EXPECT_EQ(report_to_json(again).dump(1), json.dump(1));
  EXPECT_EQ(again.summary.critical_path, report.summary.critical_path);
  EXPECT_EQ(again.summary.collectives[0].ranks, report.summary.collectives[0].ranks);
  EXPECT_EQ(again.machine, report.machine);
  EXPECT_EQ(again.expectation->largest->time, -7);
  EXPECT_EQ(again.summary.ranks[0].waiting, 6);
}

}  // namespace
}  // namespace tandem
