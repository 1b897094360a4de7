// A document gives the text that the command printed which wrote it.
#include "reports/stored_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "reports/base/json_fields.h"
#include "reports/checks/check.h"
#include "reports/checks/history.h"
#include "reports/checks/paired_check.h"
#include "reports/checks/suite.h"
#include "reports/comparison/compare.h"
#include "reports/comparison/exploration.h"
#include "reports/run/report_json.h"
#include "reports/run/report_text.h"
#include "reports/sweep/sweep_json.h"
#include "tests/reports/testing.h"

namespace tandem {
namespace {

using testing::HasSubstr;
using Json = nlohmann::ordered_json;

// As the document is read from a file.
std::string shown(const Json& document, bool all = false) {
  return stored_text(parse_json(json_text(document), "stored.json"), "stored.json", all);
}

std::string problem_of(const Json& document) {
  try {
    stored_text(document, "stored.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(StoredText, OfComparisonsIsTheirs) {
  Report predicted = simulated_report();
  predicted.summary.step_time.mean += 300'000;
  predicted.summary.step_time.median += 300'000;
  predicted.summary.per_step.compute += 300'000;
  predicted.summary.collectives[0].time_ns = 120'000;
  const std::vector<Comparison> both = {compare(full_report(), simulated_report()), compare(full_report(), predicted)};
  EXPECT_EQ(shown(comparisons_to_json(both)), comparisons_text(both));
  EXPECT_EQ(shown(comparisons_to_json(both), true), comparisons_text(both, true));
}

TEST(StoredText, OfADisturbedComparisonSaysWhatDisturbedIt) {
  const std::vector<Comparison> calibrated = {compare(full_report(), simulated_report(), "a neighbour worked")};
  EXPECT_THAT(shown(comparisons_to_json(calibrated)), HasSubstr("DISTURBED: a neighbour worked. No errors are shown"));
  EXPECT_EQ(shown(comparisons_to_json(calibrated)), comparisons_text(calibrated));
  Json older = comparisons_to_json(calibrated);
  for (const char* key : {"disturbance", "calibration_disturbance"}) older["comparisons"][0].erase(key);
  EXPECT_THAT(shown(older), HasSubstr("DISTURBED: the calibration was disturbed. No errors are shown"));
}

TEST(StoredText, OfAChecksIsTheirs) {
  Report slower = simulated_report();
  slower.summary.step_time.mean += 1000;
  slower.summary.step_time.median += 1000;
  slower.summary.per_step.compute += 900;
  for (const Report& now : {slower, simulated_report(), full_report()}) {
    const CheckResult result = check(now, simulated_report(), {});
    EXPECT_EQ(shown(check_to_json(result, now, simulated_report())), check_text(result, now, simulated_report()));
  }
}

std::vector<Launch> launches_of(int pairs, double ratio) {
  std::vector<Launch> launches;
  for (int i = 0; i < 2 * pairs; ++i) {
    Launch launch{.is_new = i % 2 == 1, .report = full_report()};
    launch.report.summary.step_time.mean = launch.report.summary.step_time.median =
        std::llround((1e6 + 40 * i) * (launch.is_new ? ratio : 1));
    launch.report.summary.per_step.compute += launch.is_new ? 5000 + i : 0;
    launches.push_back(std::move(launch));
  }
  return launches;
}

TEST(StoredText, OfPairsOfLaunchesIsTheirs) {
  for (const auto& [pairs, ratio] : {std::pair{8, 1.1}, {8, 1.0}, {32, 1.03}}) {
    const std::vector<Launch> launches = launches_of(pairs, ratio);
    auto result = look_at(log_ratios_of(launches), 0.03);
    ASSERT_TRUE(result) << pairs << " pairs, " << ratio;
    add_figures(*result, launches);
    EXPECT_EQ(shown(paired_check_to_json(*result, launches, 7)),
              paired_check_text({.title = title_of(full_report()), .result = *result, .seed = 7}));
  }
}

HistoryLaunch stored_launch(Nanoseconds step_time, bool exact = false) {
  HistoryLaunch launch = history_launch(full_report(), "0123456789abcdef", "2026-11-22T12:00:00Z");
  launch.machine = exact ? "" : "a machine";
  launch.step_time.mean = launch.step_time.median = step_time;
  launch.exact = exact;
  return launch;
}

std::vector<HistoryLaunch> stored_launches(int count, bool exact = false) {
  std::vector<HistoryLaunch> launches;
  for (int i = 0; i < count; ++i) launches.push_back(stored_launch((i < 15 ? 1'000'000 : 1'100'000) + i % 7, exact));
  return launches;
}

TEST(StoredText, OfALaunchAgainstItsHistoryIsItsOwn) {
  const auto expect_same = [](const HistoryResult& result) {
    EXPECT_EQ(shown(history_check_to_json(result, {})), history_check_text(result));
  };
  expect_same(judge_launches({}, {stored_launch(1'000'000)}, {}));
  expect_same(judge_launches(stored_launches(30), {stored_launch(2'000'000)}, {}));
  expect_same(judge_exact(stored_launches(3, true), stored_launch(2'000'000, true)));
}

TEST(StoredText, OfAHistoryIsItsOwn) {
  std::vector<HistoryLaunch> launches = stored_launches(1100);
  launches[3].disturbed = true;
  launches.push_back(stored_launch(7, true));
  const auto series = series_of(launches, 0.03);
  const Json document = history_to_json(series, 0.03);
  EXPECT_THAT(shown(document), HasSubstr("changes are those of the last 1000 launches"));
  EXPECT_EQ(shown(document), history_text(series, 0.03));
  Json wrong = document;
  wrong["series"][0]["changes"] = {{{"launch", 5000}, {"change", 0.1}, {"p_value", 0}}};
  EXPECT_THAT(problem_of(wrong), HasSubstr("series[0].changes[0]: is no place of a launch"));
}

TEST(StoredText, OfASuiteIsItsOwn) {
  CheckedSuite suite(5);
  for (CheckedScenario& one : suite) {
    one = {.file = "gate/a.yaml", .name = "a", .mode = "exact", .state = CheckState::judged, .verdict = Verdict::ok};
    one.reason = "as before";
    one.step_time = one.reference = 1000;
  }
  suite[1].verdict = Verdict::model_changed;
  suite[1].exit_code = 1;
  suite[2].misses_expectation = true;
  suite[2].exit_code = 1;
  suite[3].state = CheckState::skipped;
  suite[4].state = CheckState::failed;
  suite[4].reference = 0;
  EXPECT_EQ(shown(suite_to_json(suite)), suite_text(suite));
}

SweepTable small_sweep() {
  SweepTable table{
      .scenario = "which", .engine = "sim", .fields = {"strategy.name", "devices.per_worker"}, .points = {}};
  for (int devices = 1; devices <= 16; ++devices) {
    for (const char* strategy : {"mirrored", "central_storage"}) {
      SweptPoint point = swept_point(full_report(), devices);
      point.values = {{"strategy.name", strategy}, {"devices.per_worker", std::to_string(devices)}};
      point.strategy = strategy;
      point.throughput = *strategy == 'm' ? 100.0 * devices / 3 : 150 + devices;
      point.memory = MemoryNeed{.parameters = 1000};
      table.points.push_back(std::move(point));
    }
  }
  table.points[3] = {.values = table.points[3].values, .state = PointState::failed, .problem = "it broke"};
  table.points[4] = {.values = table.points[4].values};
  return table;
}

TEST(StoredText, OfASweepIsItsOwn) {
  const SweepTable table = small_sweep();
  EXPECT_EQ(shown(sweep_to_json(table)), sweep_text(table));
  EXPECT_EQ(shown(sweep_to_json(table), true), sweep_text(table, true));
}

TEST(StoredText, OfAnExplorationIsItsOwn) {
  Exploration exploration{.unseeded = simulated_report(), .values_compared = true, .schedules = 3, .failure = {}};
  exploration.add(simulated_report());
  EXPECT_EQ(shown(exploration_to_json(exploration)), exploration_text(exploration));
  exploration.failure = FailedSchedule{.seed = 2, .what = "it broke", .command = "tandem run a.yaml"};
  EXPECT_EQ(shown(exploration_to_json(exploration)), exploration_text(exploration));
}

TEST(StoredText, NamesEverythingThatIsWrongWithADocument) {
  const CheckResult result = check(simulated_report(), simulated_report(), {});
  Json document = check_to_json(result, simulated_report(), simulated_report());
  document["verdict"] = "perhaps";
  document["baseline"].erase("steps");
  document["report"]["kind"] = "poem";
  const std::string problem = problem_of(document);
  EXPECT_THAT(problem, HasSubstr("stored.json: verdict: 'perhaps' is no verdict\n"));
  EXPECT_THAT(problem, HasSubstr("stored.json: baseline.steps: is missing"));
  EXPECT_THAT(problem, HasSubstr("stored.json: report.kind: is 'poem'"));
  for (const char* kind :
       {"comparison", "paired_check", "history_check", "suite", "sweep", "history", "exploration", "blame"}) {
    EXPECT_THAT(problem_of({{"kind", kind}}), HasSubstr("is missing")) << kind;
  }
  EXPECT_THAT(problem_of({{"kind", "poem"}}), HasSubstr("stored.json: kind: is 'poem', which has no text"));
}

}  // namespace
}  // namespace tandem
