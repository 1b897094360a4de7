// Verdicts over pairs of launches, and how often they are wrong.
#include "reports/checks/paired_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/reports/testing.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

std::vector<double> equal_ratios(int pairs, double change) {
  return std::vector<double>(static_cast<std::size_t>(pairs), std::log1p(change));
}

TEST(PairedLook, ComesAfterEightSixteenAndThirtyTwoPairs) {
  for (int pairs = 1; pairs <= 40; ++pairs) {
    const bool is_due = pairs == 8 || pairs == 16 || pairs == 32;
    EXPECT_EQ(look_at(equal_ratios(pairs, 0), 0.03).has_value(), is_due) << pairs;
  }
}

TEST(PairedLook, DecidesByTheIntervalAndTheMargin) {
  EXPECT_EQ(look_at(equal_ratios(8, 0.02), 0.03)->verdict, Verdict::ok);
  EXPECT_EQ(look_at(equal_ratios(8, 0.04), 0.03)->verdict, Verdict::regressed);
  EXPECT_EQ(look_at(equal_ratios(8, -0.04), 0.03)->verdict, Verdict::improved);
  EXPECT_NEAR(look_at(equal_ratios(8, 0.04), 0.03)->change.estimate, 0.04, 1e-12);
}

TEST(PairedLook, WantsMorePairsWhileTheIntervalCrossesTheMargin) {
  std::vector<double> ratios = equal_ratios(8, 0.02);
  ratios[3] = std::log1p(0.10);
  EXPECT_FALSE(look_at(ratios, 0.03).has_value()) << "all of 8 differences span the interval";
  for (int i = 8; i < 32; ++i) ratios.push_back(std::log1p(i % 2 == 0 ? 0.01 : 0.045));
  const auto last = look_at(ratios, 0.03);
  ASSERT_TRUE(last.has_value());
  EXPECT_EQ(last->verdict, Verdict::inconclusive);
  EXPECT_GT(last->pairs_needed.value(), 32);
}

TEST(PairedLook, SharesItsLevelAmongSeveralComparisons) {
  EXPECT_FALSE(look_at(equal_ratios(8, 0.04), 0.03, 2).has_value()) << "1 / 256 is more than half of 0.005";
  EXPECT_EQ(look_at(equal_ratios(16, 0.04), 0.03, 2)->verdict, Verdict::regressed);
  EXPECT_DOUBLE_EQ(look_at(equal_ratios(16, 0.04), 0.03, 2)->level, 0.005);
  EXPECT_EQ(look_at(equal_ratios(8, 0.02), 0.03, 2)->verdict, Verdict::ok) << "an equivalence is no alarm";
  // At 16 of 32 pairs the change was certain enough for one comparison, but not for a thousand.
  std::vector<double> ratios = equal_ratios(15, 0.05);
  for (int i = 15; i < 32; ++i) ratios.push_back(std::log1p(0.025 + 0.001 * (i % 2)));
  EXPECT_EQ(look_again(ratios, 0.03, 1000)->verdict, Verdict::inconclusive);
  EXPECT_EQ(look_again(ratios, 0.03, 1)->verdict, Verdict::regressed);
  EXPECT_FALSE(look_again(equal_ratios(7, 0.04), 0.03, 1).has_value());
  // What is not decided shows the interval that did not decide.
  ratios = equal_ratios(30, 0.04);
  ratios.push_back(std::log1p(0.0));
  ratios.push_back(std::log1p(-0.02));
  const auto open = look_at(ratios, 0.03, 100'000);
  ASSERT_EQ(open->verdict, Verdict::inconclusive);
  EXPECT_LT(open->change.lower, 0.03);
  EXPECT_DOUBLE_EQ(open->level, 0.010 / 100'000);
}

TEST(PairedCheck, IsSeldomWrongAboutAnyOfSeveral) {
  // Ten programs that are exactly at the margin.
  std::mt19937_64 random(20261122);
  std::normal_distribution<double> noise(0, 0.01);
  constexpr int kSuites = 400, kPrograms = 10;
  int suites_with_alarm = 0;
  for (int suite = 0; suite < kSuites; ++suite) {
    bool has_alarm = false;
    for (int program = 0; program < kPrograms; ++program) {
      std::vector<double> ratios;
      std::optional<PairedResult> result;
      while (!result) {
        ratios.push_back(std::log1p(0.03) + noise(random) - noise(random));
        result = look_at(ratios, 0.03, kPrograms);
      }
      has_alarm |= result->verdict == Verdict::regressed;
    }
    suites_with_alarm += has_alarm ? 1 : 0;
  }
  EXPECT_LE(suites_with_alarm, kSuites * 3 / 100);
}

TEST(LaunchOrder, IsABlockOfFourThatReadsTheSameBackwards) {
  int begin_with_new = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const LaunchOrder order(seed), same(seed);
    for (int block = 0; block < 4; ++block) {
      const int first = 4 * block;
      EXPECT_NE(order.is_new(first), order.is_new(first + 1));
      EXPECT_EQ(order.is_new(first), order.is_new(first + 3));
      EXPECT_EQ(order.is_new(first + 1), order.is_new(first + 2));
      EXPECT_EQ(order.is_new(first), same.is_new(first));
      begin_with_new += order.is_new(first) ? 1 : 0;
    }
  }
  EXPECT_NEAR(begin_with_new, 400, 60) << "of 800 blocks";
}

// Runs the whole sequence of looks for a true change, with noise of each launch; returns the shares of the verdicts.
std::map<Verdict, double> shares_of_verdicts(double change, double launch_noise, int trials) {
  std::mt19937_64 random(20261122);
  std::normal_distribution<double> noise(0, launch_noise);
  std::map<Verdict, double> shares;
  for (int trial = 0; trial < trials; ++trial) {
    std::vector<double> ratios;
    std::optional<PairedResult> result;
    while (!result) {
      ratios.push_back(std::log1p(change) + noise(random) - noise(random));
      result = look_at(ratios, 0.03);
    }
    shares[result->verdict] += 1.0 / trials;
  }
  return shares;
}

TEST(PairedCheck, IsSeldomWrong) {
  constexpr int kTrials = 4000;
  EXPECT_LE(shares_of_verdicts(0, 0.01, kTrials)[Verdict::regressed], 0.001);
  EXPECT_LE(shares_of_verdicts(0, 0.03, kTrials)[Verdict::regressed], 0.001);
  EXPECT_LE(shares_of_verdicts(0.03, 0.01, kTrials)[Verdict::regressed], 0.03);
  EXPECT_LE(shares_of_verdicts(0.03, 0.03, kTrials)[Verdict::regressed], 0.03);
}

TEST(PairedCheck, FindsFivePercent) {
  std::map<Verdict, double> shares = shares_of_verdicts(0.05, 0.01, 4000);
  EXPECT_GE(shares[Verdict::regressed], 0.95);
  shares = shares_of_verdicts(-0.06, 0.01, 4000);
  EXPECT_GE(shares[Verdict::improved], 0.95);
}

Launch launch_of(bool is_new, Nanoseconds step, Nanoseconds compute) {
  Launch launch{.is_new = is_new, .report = {}};
  launch.report.summary.step_time.mean = launch.report.summary.step_time.median = step;
  launch.report.summary.per_step.compute = compute;
  return launch;
}

TEST(PairedCheck, TakesNeighboursAsPairsWhicheverCameFirst) {
  const std::vector<Launch> launches = {launch_of(false, 100, 50), launch_of(true, 110, 50), launch_of(true, 220, 100),
                                        launch_of(false, 200, 100)};
  EXPECT_THAT(log_ratios_of(launches), testing::ElementsAre(testing::DoubleNear(std::log(1.1), 1e-12),
                                                            testing::DoubleNear(std::log(1.1), 1e-12)));
}

TEST(PairedCheck, ShowsPartsWithoutDecidingByThem) {
  std::vector<Launch> launches;
  for (int i = 0; i < 16; ++i) launches.push_back(launch_of(i % 2 == 1, 100'000, i % 2 == 1 ? 60'000 : 50'000));
  auto result = look_at(log_ratios_of(launches), 0.03);
  ASSERT_TRUE(result.has_value());
  add_figures(*result, launches);
  EXPECT_EQ(result->verdict, Verdict::ok);
  ASSERT_EQ(result->figures.size(), 1u) << "nobody spends time in the other parts";
  EXPECT_EQ(result->figures[0].name, "per_step.compute");
  EXPECT_NEAR(result->figures[0].estimate, 0.2, 1e-9);
  ASSERT_TRUE(result->figures[0].change.has_value()) << "one figure has the whole level";
  EXPECT_NEAR(result->figures[0].change->lower, 0.2, 1e-9);
  EXPECT_EQ(result->figures[0].adjusted_p_value, 2.0 / 256);
}

// With 8 pairs there is an exact interval at the level 0.005, and none at half of that.
TEST(PairedCheck, IntervalsOfPartsAreHolms) {
  std::vector<Launch> launches;
  for (int i = 0; i < 16; ++i) {
    launches.push_back(launch_of(i % 2 == 1, 100'000, i % 2 == 1 ? 60'000 : 50'000));
    launches.back().report.summary.per_step.idle = i % 4 == 1 ? 900 : 1000;
  }
  auto result = look_at(log_ratios_of(launches), 0.03);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->level, 0.005);
  add_figures(*result, launches);
  ASSERT_EQ(result->figures.size(), 2u);
  EXPECT_FALSE(result->figures[0].change.has_value()) << "the smaller p-value, at half of the level";
  EXPECT_TRUE(result->figures[1].change.has_value()) << "the other, at all of it";
  EXPECT_THAT(paired_check_text({.title = "digits", .result = *result, .seed = 7}), testing::HasSubstr("(--seed 7)"));
}

TEST(PairedCheck, SaysFirstThatLaunchesWereDisturbed) {
  std::vector<Launch> launches;
  for (int i = 0; i < 64; ++i) {
    launches.push_back(launch_of(i % 2 == 1, 100'000 + i % 5 * 10'000, 50'000));
    launches.back().report.machine_use = MachineUse{.cores = 2, .time = 1000, .own = 400};
  }
  auto result = look_at(log_ratios_of(launches), 0.03);
  ASSERT_TRUE(result.has_value());
  ASSERT_EQ(result->verdict, Verdict::inconclusive);
  ASSERT_TRUE(result->pairs_needed.has_value());
  add_disturbance(*result, launches);
  EXPECT_EQ(result->disturbance, (PairedDisturbance{.launches = 64}));
  EXPECT_EQ(paired_reason(*result).find("disturbed"), std::string::npos);

  const auto disturb = [&](int count) {
    for (int i = 0; i < count; ++i) {
      launches[static_cast<std::size_t>(i)].report.machine_use =
          MachineUse{.cores = 2, .time = 1000, .own = 400, .waited = 600, .others = 600};
    }
    add_disturbance(*result, launches);
  };
  disturb(1);
  EXPECT_TRUE(result->pairs_needed.has_value()) << "a single launch";
  disturb(41);
  EXPECT_FALSE(result->pairs_needed.has_value());
  EXPECT_THAT(paired_reason(*result),
              testing::StartsWith("41 of 64 launches were disturbed; the median one lost 60 %; "));
  EXPECT_THAT(paired_reason(*result), testing::HasSubstr("on such a machine more pairs may not help"));
  const auto json = paired_check_to_json(*result, launches, 7);
  EXPECT_EQ(json["launches"][0]["disturbed"], true);
  EXPECT_NEAR(json["launches"][0]["lost"], 0.6, 1e-9);
  EXPECT_EQ(json["launches"][63]["disturbed"], false);
  const StoredPairedCheck stored = paired_check_from_json(json, "stored");
  EXPECT_EQ(stored.result.disturbance, result->disturbance);
  EXPECT_THAT(paired_check_text(stored), testing::HasSubstr(": inconclusive\n41 of 64 launches were disturbed"));
}

TEST(PairedCheck, RefusesLaunchesOfAnotherJobOrMachine) {
  const Report first = launch_of(false, 100, 50).report;
  const auto problem = [&](const std::function<void(Report&)>& change) {
    Report other = first;
    change(other);
    try {
      check_comparable(other, first, "launch 2");
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(problem([](Report&) {}), "");
  EXPECT_THAT(problem([](Report& report) { report.scenario_hash = "1"; }),
              testing::HasSubstr("launch 2: the scenario's content"));
  EXPECT_EQ(problem([](Report& report) { report.system = "8 GiB"; }), "") << "the other one is older and does not say";
  EXPECT_THAT(problem([](Report& report) { report.settings["hardware_threads"] = "3"; }),
              testing::HasSubstr("the number of hardware threads is '3', in the first launch '(none)'"));
  EXPECT_THAT(problem([](Report& report) { report.summary.step_time.mean = report.summary.step_time.median = 0; }),
              testing::HasSubstr("no time"));
}

}  // namespace
}  // namespace tandem
