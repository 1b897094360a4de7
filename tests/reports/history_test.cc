// Histories: their files, and how often their verdicts are wrong.
#include "reports/history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "topologies/base/error.h"

namespace tandem {
namespace {

using testing::HasSubstr;

HistoryLaunch launch_of(Nanoseconds median) {
  return {.scenario = "digits",
          .scenario_hash = "1f2e",
          .engine = "an engine",
          .machine = "a machine",
          .commit = "0123456789abcdef",
          .date = "2026-11-22T12:00:00Z",
          .tandem_version = "0.1.0",
          .step_time = {.median = median, .min = median, .p95 = median, .median_absolute_deviation = 1, .samples = 9}};
}

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
  disturbed.step_time.median = 1'000'000;
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
  changed.step_time.median = 100;
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

class HistoryFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "tandem-history-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path file() const { return folder_ / "history.jsonl"; }
  std::string text() const {
    std::ifstream in(file(), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& text) const { std::ofstream(file(), std::ios::binary) << text; }
  // The message of reading the file, without its name.
  std::string problem() const {
    try {
      read_history(file());
    } catch (const InputError& error) {
      std::string message = error.what();
      for (std::size_t at = 0; (at = message.find(file().string())) != std::string::npos;) {
        message.erase(at, file().string().size());
      }
      return message;
    }
    return "";
  }

 private:
  std::filesystem::path folder_;
};

TEST_F(HistoryFile, GivesBackWhatWasAppended) {
  EXPECT_TRUE(read_history(file()).empty()) << "there is none";
  HistoryLaunch accepted = launch_of(2'000'000);
  accepted.accepted = accepted.disturbed = true;
  accepted.verdict = Verdict::improved;
  append_history(file(), std::vector{launch_of(1'000'000), accepted});
  HistoryLaunch simulated = launch_of(3'000'000);
  simulated.exact = true;
  append_history(file(), std::vector{simulated});
  const auto history = read_history(file());
  ASSERT_EQ(history.size(), 3U);
  EXPECT_TRUE(history[0].is_of(launch_of(1)));
  EXPECT_EQ(history[0].commit, "0123456789abcdef");
  EXPECT_EQ(history[0].date, "2026-11-22T12:00:00Z");
  EXPECT_EQ(history[0].step_time.samples, 9);
  EXPECT_FALSE(history[0].accepted);
  EXPECT_TRUE(history[1].accepted);
  EXPECT_TRUE(history[1].disturbed);
  EXPECT_EQ(history[1].verdict, Verdict::improved);
  EXPECT_EQ(history[2].step_time.median, 3'000'000);
  EXPECT_FALSE(history[1].exact);
  EXPECT_TRUE(history[2].exact);
}

TEST_F(HistoryFile, LosesNothingWhenSeveralWriteAtOnce) {
  constexpr int kWriters = 8, kLines = 50;
  std::vector<std::thread> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([this, writer] {
      for (int i = 0; i < kLines; ++i) {
        HistoryLaunch launch = launch_of(1000 + writer);
        launch.commit = std::string(20000, static_cast<char>('a' + writer));  // longer than one write of a stream
        append_history(file(), std::vector{launch});
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  std::map<Nanoseconds, int> lines;
  for (const HistoryLaunch& launch : read_history(file())) ++lines[launch.step_time.median];
  for (int writer = 0; writer < kWriters; ++writer) EXPECT_EQ(lines[1000 + writer], kLines);
}

TEST_F(HistoryFile, SaysWhichLineIsWrong) {
  append_history(file(), std::vector{launch_of(1)});
  const std::string line = text();
  const auto with = [&line](const std::string& what, const std::string& other) {
    std::string changed = line;
    return changed.replace(changed.find(what), what.size(), other);
  };
  write(line + line.substr(0, 40));
  EXPECT_EQ(problem(), ":2: is cut: it does not end in a newline; remove the line");
  write(line + "hello\n");
  EXPECT_EQ(problem(), ":2: is no line of a history, as `tandem check --history` writes it");
  write(line + "{\"launch\",}\n");
  EXPECT_EQ(problem(), ":2:10: is not JSON; a line of a history is one object");
  write("<<<<<<< HEAD\n" + line + "=======\n" + line + ">>>>>>> main\n");
  EXPECT_THAT(problem(), HasSubstr(":1: is a mark of a merge that git could not do; remove it"));
  EXPECT_THAT(problem(), HasSubstr(":3: is a mark of a merge"));
  EXPECT_THAT(problem(), HasSubstr(":5: is a mark of a merge"));
  write(with("\"median\":1", "\"median\":NaN"));
  EXPECT_THAT(problem(), HasSubstr("is not JSON"));
  write(with("\"median\":1", "\"median\":null"));
  EXPECT_THAT(problem(), HasSubstr(":1: step_time_ns.median: expected a whole number"));
  write(with("\"median\":1", "\"median\":0"));
  EXPECT_EQ(problem(), ":1: step_time_ns.median: must be greater than 0");
  write(with("\"schema_version\":1", "\"schema_version\":7"));
  EXPECT_EQ(problem(), ":1: schema_version: version 7 is not known; this Tandem reads version 1");
  write(with("\"launch\"", "\"report\""));
  EXPECT_EQ(problem(), ": is no history; `tandem check --history` begins one if there is no such file");
  write(with("\"verdict\":\"ok\"", "\"verdict\":\"fine\""));
  EXPECT_EQ(problem(), ":1: verdict: 'fine' is no verdict");
  write(line + "\n");
  EXPECT_THAT(problem(), HasSubstr(":2:"));
}

// Lines of other scenarios are not read, but the file must be a history all the same.
TEST_F(HistoryFile, MustBeAHistoryEvenIfNothingInItIsOfTheScenario) {
  const std::vector<std::string> hashes = {"1f2e"};
  const auto problem_of = [&](const std::string& content) {
    write(content);
    try {
      read_history(file(), hashes);
    } catch (const InputError& error) {
      return std::string(error.what()).substr(file().string().size());
    }
    return std::string();
  };
  EXPECT_EQ(problem_of("{\"kind\":\"launch\", \"of\": \"something else\"}\n"), "");
  const std::string other = ": is no history; `tandem check --history` begins one if there is no such file";
  EXPECT_EQ(problem_of("some notes\nof mine\n"), other);
  EXPECT_EQ(problem_of("{\n  \"schema_version\": 1,\n  \"kind\": \"report\"\n}\n"), other) << "a golden report";
  EXPECT_EQ(problem_of("{\"schema_version\":1,\"kind\":\"report\"}\n"), other);
  EXPECT_EQ(problem_of("{\n  \"kind\": \"launch\"\n}\n"), other) << "not one line";
  EXPECT_THAT(problem_of("{\"kind\":\"launch\"}\n=======\n"), HasSubstr(":2: is a mark of a merge"));
}

TEST_F(HistoryFile, IsNotAppendedToAfterACutLine) {
  append_history(file(), std::vector{launch_of(1)});
  const std::string cut = text() + "{\"schema";
  write(cut);
  EXPECT_THROW(append_history(file(), std::vector{launch_of(2)}), InputError);
  EXPECT_EQ(text(), cut);
}

TEST_F(HistoryFile, IsAFileThatCanBeWritten) {
  EXPECT_THROW(read_history("/dev/full"), InputError) << "it never ends";
  EXPECT_THROW(append_history("/dev/full", std::vector{launch_of(1)}), InputError);
  EXPECT_THROW(check_appendable(file().parent_path()), InputError);
  EXPECT_THROW(check_appendable("/no/such/folder/history.jsonl"), Error);
  EXPECT_NO_THROW(check_appendable(file()));
  EXPECT_FALSE(std::filesystem::exists(file())) << "asking leaves nothing";
}

TEST_F(HistoryFile, OfAMillionLinesIsReadForOneScenario) {
  HistoryLaunch other = launch_of(1'000'000);
  other.scenario_hash = "another";
  append_history(file(), std::vector{other});
  const std::string line = text();
  append_history(file(), std::vector{launch_of(2'000'000)});
  {
    std::ofstream out(file(), std::ios::binary | std::ios::app);
    for (int i = 0; i < 1'000'000; ++i) out << line;
  }
  const std::vector<std::string> hashes = {"1f2e"};
  const auto mine = read_history(file(), hashes);
  ASSERT_EQ(mine.size(), 1U);
  EXPECT_EQ(mine[0].step_time.median, 2'000'000);
}

// A history of one scenario: only its last lines are read, however many there are.
TEST_F(HistoryFile, OfAMillionLinesOfOneScenarioIsReadFromItsEnd) {
  append_history(file(), std::vector{launch_of(1'000'000)});
  const std::string line = text();
  {
    std::ofstream out(file(), std::ios::binary | std::ios::app);
    out << "{\"1f2e\": \"would be refused\", \"kind\": \"launch\"}\n";
  }
  EXPECT_THROW(read_history(file()), InputError);
  {
    std::ofstream out(file(), std::ios::binary | std::ios::app);
    for (int i = 0; i < 1'000'000; ++i) out << line;
  }
  append_history(file(), std::vector{launch_of(2'000'000)});
  const std::vector<std::string> hashes = {"1f2e"};
  const auto last = read_history(file(), hashes);
  ASSERT_EQ(last.size(), kMostOfText);
  EXPECT_EQ(last.front().step_time.median, 1'000'000);
  EXPECT_EQ(last.back().step_time.median, 2'000'000);
}

TEST(HistorySeries, LastLaunchesKeepTheChangesAmongThem) {
  HistorySeries series{.launches = steady_history(30)};
  series.changes = {{.index = 12, .change = 0.1, .p_value = 0}, {.index = 25, .change = 0.2, .p_value = 0}};
  const HistorySeries last = last_of(series, 10);
  EXPECT_EQ(last.launches.size(), 10U);
  EXPECT_EQ(last.left_out, 20U);
  ASSERT_EQ(last.changes.size(), 1U);
  EXPECT_EQ(last.changes[0].index, 5);
  EXPECT_EQ(history_to_json({last}, 0.03)["series"][0]["launches_left_out"], 20);
  EXPECT_EQ(last_of(series, 100).left_out, 0U);
}

TEST(HistorySeries, AreByScenarioEngineAndMachineWithTheirChanges) {
  std::vector<HistoryLaunch> history = steady_history(30);
  for (HistoryLaunch launch : steady_history(30)) {
    launch.step_time.median = launch.step_time.median * 11 / 10;
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
