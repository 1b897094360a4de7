// Histories: how often their verdicts are wrong, and their series.
#include "reports/checks/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/reports/history_testing.h"

namespace tandem {
namespace {

using testing::HasSubstr;

// 1 ms with a spread of 1 %: half of the launches are 0.6745 % and more from the median.
std::vector<HistoryLaunch> steady_history(int count = 40) {
  std::vector<HistoryLaunch> history;
  for (int i = 0; i < count; ++i) {
    const double noise = (i % 2 == 0 ? 1 : -1) * (i % 4 < 2 ? 0.006745 : 0.006746);
    history.push_back(launch_of(std::llround(1e6 * std::exp(noise))));
  }
  return history;
}

TEST(HistoryLevel, IsTheMedianWithTheSpreadOfNormalNoise) {
  const auto level = level_of(steady_history(), {});
  ASSERT_TRUE(level.has_value());
  EXPECT_EQ(level->step_time, 1'000'000);
  EXPECT_NEAR(level->spread, 0.01, 1e-5);
  EXPECT_NEAR(level->z_of(1'010'050), 1, 1e-3);
  EXPECT_FALSE(level_of(steady_history(19), {}).has_value());
  EXPECT_TRUE(level_of(steady_history(20), {}).has_value());
  const std::vector<HistoryLaunch> equal(20, launch_of(1000));
  EXPECT_DOUBLE_EQ(level_of(equal, {})->spread, 0.001) << "a nanosecond";
}

TEST(HistoryLevel, CountsUndisturbedLaunchesOfTheSeriesSinceTheLastAcceptedOne) {
  std::vector<HistoryLaunch> history = steady_history(30);
  history[3].machine = "another machine";
  history[4].scenario_hash = "another";
  history[5].engine = "another";
  history[6].disturbed = true;
  history[7].verdict = Verdict::regressed;
  EXPECT_EQ(level_launches(history, launch_of(1), {}).size(), 25U);
  history[10].accepted = true;
  EXPECT_EQ(level_launches(history, launch_of(1), {}).size(), 20U);
  EXPECT_EQ(level_launches(history, launch_of(1), {.window = 7}).size(), 7U);
  EXPECT_EQ(level_launches(history, launch_of(1), {.window = 7}).front().step_time.median,
            history[23].step_time.median);
}

TEST(HistoryJudgement, NeedsAMarginAndAZBeyondTheirLimits) {
  const auto level = *level_of(steady_history(), {});
  EXPECT_FALSE(is_suspect(level, 1'034'000, {})) << "beyond the margin of 3 %, but z is 3.3";
  EXPECT_TRUE(is_suspect(level, 1'037'000, {}));
  EXPECT_FALSE(is_suspect(level, 1'037'000, {.margin = 0.05})) << "z is 3.6, but within the margin";
  EXPECT_TRUE(is_suspect(level, 960'000, {}));
}

TEST(HistoryJudgement, GoesByTheMedianOfTheSuspectAndTwoMore) {
  const auto history = steady_history();
  EXPECT_EQ(judge_launches(history, {launch_of(1'010'000)}, {}).verdict, Verdict::ok);
  const auto slower = judge_launches(history, {launch_of(1'100'000), launch_of(1'000'000), launch_of(1'090'000)}, {});
  EXPECT_EQ(slower.verdict, Verdict::regressed);
  EXPECT_EQ(slower.step_time, 1'090'000);
  EXPECT_EQ(slower.launches[1].verdict, Verdict::regressed) << "the verdict of the check";
  EXPECT_NEAR(slower.visible, std::expm1(3.5 * slower.level->spread), 1e-12);
  const auto once = judge_launches(history, {launch_of(1'100'000), launch_of(1'000'000), launch_of(1'001'000)}, {});
  EXPECT_EQ(once.verdict, Verdict::ok);
  EXPECT_THAT(once.reason, HasSubstr("do not confirm"));
  const auto faster = judge_launches(history, {launch_of(900'000), launch_of(900'000), launch_of(900'000)}, {});
  EXPECT_EQ(faster.verdict, Verdict::improved);
}

TEST(HistoryJudgement, IsInconclusiveWithoutALevelAndForASlowLaunchThatWasDisturbed) {
  const auto young = judge_launches(steady_history(19), {launch_of(9'000'000)}, {});
  EXPECT_EQ(young.verdict, Verdict::inconclusive);
  EXPECT_THAT(young.reason, HasSubstr("only 19 of the 20 launches"));
  HistoryLaunch disturbed = launch_of(1'100'000);
  disturbed.disturbed = true;
  const auto doubtful = judge_launches(steady_history(), {disturbed, disturbed, disturbed}, {});
  EXPECT_EQ(doubtful.verdict, Verdict::inconclusive);
  disturbed.step_time.mean = disturbed.step_time.median = 1'000'000;
  EXPECT_EQ(judge_launches(steady_history(), {disturbed}, {}).verdict, Verdict::ok);
}

// The share of checks that end in "regressed" for a true change, with noise of each launch and 20 to 50 of them known.
double share_of_regressed(double change, double launch_noise, int trials) {
  std::mt19937_64 random(20261122);
  std::normal_distribution<double> noise(0, launch_noise);
  const HistoryLimits limits;
  int regressed = 0;
  for (int trial = 0; trial < trials; ++trial) {
    std::vector<HistoryLaunch> history;
    const int count = 20 + trial % 31;
    for (int i = 0; i < count; ++i) history.push_back(launch_of(std::llround(1e8 * std::exp(noise(random)))));
    const auto next = [&] { return launch_of(std::llround(1e8 * (1 + change) * std::exp(noise(random)))); };
    std::vector<HistoryLaunch> launches = {next()};
    if (is_suspect(*level_of(history, limits), launches.front().step_time.median, limits)) {
      launches.push_back(next());
      launches.push_back(next());
    }
    regressed += judge_launches(history, launches, limits).verdict == Verdict::regressed ? 1 : 0;
  }
  return static_cast<double>(regressed) / trials;
}

TEST(HistoryJudgement, IsSeldomWrong) {
  constexpr int kTrials = 4000;
  EXPECT_LE(share_of_regressed(0, 0.01, kTrials), 0.001);
  EXPECT_LE(share_of_regressed(0, 0.03, kTrials), 0.001);
  EXPECT_LE(share_of_regressed(0.01, 0.01, kTrials), 0.003);
  EXPECT_GE(share_of_regressed(0.05, 0.01, kTrials), 0.8);
  EXPECT_GE(share_of_regressed(0.06, 0.01, kTrials), 0.95);
}

HistoryLaunch exact_launch(Nanoseconds median, const std::string& commit, Verdict verdict = Verdict::ok) {
  HistoryLaunch launch = launch_of(median);
  launch.engine = "sim";
  launch.machine = "";
  launch.commit = commit;
  launch.verdict = verdict;
  launch.exact = true;
  return launch;
}

TEST(ExactHistory, IsEqualToTheLastAcceptedRunOrNot) {
  EXPECT_EQ(judge_exact({}, exact_launch(100, "a")).verdict, Verdict::ok);
  EXPECT_EQ(judge_exact({}, exact_launch(100, "a")).reason, "the first one of its history");
  std::vector<HistoryLaunch> history = {exact_launch(90, "a"), exact_launch(100, "b"),
                                        exact_launch(101, "c", Verdict::regressed), launch_of(7)};
  EXPECT_EQ(judge_exact(history, exact_launch(100, "d")).verdict, Verdict::ok);
  const HistoryResult slower = judge_exact(history, exact_launch(101, "d"));
  EXPECT_EQ(slower.verdict, Verdict::regressed) << "until it is accepted";
  EXPECT_EQ(slower.known, 3);
  EXPECT_NEAR(slower.change, 0.01, 1e-12);
  EXPECT_THAT(slower.reason, HasSubstr("101.0 ns now, 100.0 ns at commit b; --update accepts the new time"));
  EXPECT_EQ(slower.launches.at(0).verdict, Verdict::regressed);
  EXPECT_EQ(judge_exact(history, exact_launch(99, "d")).verdict, Verdict::improved);
  HistoryLaunch changed = exact_launch(99, "d");
  changed.scenario_hash = "another";
  EXPECT_EQ(judge_exact(history, changed).verdict, Verdict::model_changed);
  changed.step_time.mean = changed.step_time.median = 100;
  EXPECT_EQ(judge_exact(history, changed).verdict, Verdict::ok);
  EXPECT_THAT(judge_exact(history, changed).reason, HasSubstr("another content"));
}

TEST(ExactHistory, OfAScenarioIsOneSeriesWhateverItsContentWithEveryDifference) {
  std::vector<HistoryLaunch> history = {exact_launch(100, "a"), launch_of(1'000'000), exact_launch(100, "b"),
                                        exact_launch(101, "c"), exact_launch(100, "d")};
  history[3].scenario_hash = "another";
  const auto series = series_of(history, 0.03);
  ASSERT_EQ(series.size(), 2U);
  EXPECT_TRUE(series[0].is_exact());
  EXPECT_EQ(series[0].text(), "digits, simulated on engine sim");
  EXPECT_EQ(series[1].text(), "digits on a machine");
  ASSERT_EQ(series[0].changes.size(), 2U);
  EXPECT_EQ(series[0].changes[0].index, 2);
  EXPECT_NEAR(series[0].changes[0].change, 0.01, 1e-12);
  EXPECT_EQ(series[0].changes[1].index, 3);
  const auto json = history_to_json(series, 0.03);
  EXPECT_EQ(json["series"][0]["exact"], true);
  EXPECT_EQ(json["series"][0]["changes"][1]["commit"], "d");
  EXPECT_THAT(history_text(series, 0.03), HasSubstr("4 launches; the last one 100.0 ns"));
}

TEST(HistorySeries, LastLaunchesKeepTheChangesAmongThem) {
  HistorySeries series{.launches = steady_history(30)};
  series.changes = {{.index = 12, .change = 0.1, .p_value = 0}, {.index = 25, .change = 0.2, .p_value = 0}};
  const HistorySeries last = last_of(series, 10);
  EXPECT_EQ(last.launches.size(), 10U);
  EXPECT_EQ(last.earlier, 20U);
  ASSERT_EQ(last.changes.size(), 1U);
  EXPECT_EQ(last.changes[0].index, 5);
  EXPECT_EQ(history_to_json({last}, 0.03)["series"][0]["earlier_launches"], 20);
  EXPECT_EQ(last_of(series, 100).earlier, 0U);
}

TEST(HistorySeries, AreByScenarioEngineAndMachineWithTheirChanges) {
  std::vector<HistoryLaunch> history = steady_history(30);
  for (HistoryLaunch launch : steady_history(30)) {
    launch.step_time.mean = launch.step_time.median = launch.step_time.median * 11 / 10;
    launch.commit = "slower";
    history.push_back(launch);
  }
  history.insert(history.begin() + 12, launch_of(9'000'000));
  history[12].disturbed = true;
  HistoryLaunch other = launch_of(5);
  other.machine = "another machine";
  history.push_back(other);
  const auto series = series_of(history, 0.03);
  ASSERT_EQ(series.size(), 2U);
  EXPECT_EQ(series[0].launches.size(), 61U);
  ASSERT_EQ(series[0].changes.size(), 1U);
  EXPECT_EQ(series[0].changes[0].index, 31);
  EXPECT_NEAR(series[0].changes[0].change, 0.1, 0.001);
  EXPECT_TRUE(series_of(history, 0.2)[0].changes.empty());
  const std::string text = history_text(series, 0.03);
  EXPECT_THAT(text, HasSubstr("61 launches, 1 of them disturbed"));
  EXPECT_THAT(text, HasSubstr("slower"));
  EXPECT_THAT(text, HasSubstr("+10.0 %"));
  const auto json = history_to_json(series, 0.03);
  EXPECT_EQ(json["series"][0]["changes"][0]["launch"], 31);
  EXPECT_EQ(json["series"][0]["changes"][0]["commit"], "slower");
  EXPECT_TRUE(json["series"][1]["changes"].empty());
}

}  // namespace
}  // namespace tandem
