// What an exploration of schedules compares, and how it is printed.
#include "reports/comparison/exploration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace tandem {
namespace {

using testing::HasSubstr;

Report report_with(std::vector<double> loss, double accuracy = 0.5) {
  Report report;
  report.scenario = "job";
  report.loss = std::move(loss);
  report.metrics["test_accuracy"] = accuracy;
  return report;
}

Report report_taking(Nanoseconds median) {
  Report report;
  report.summary.step_time.mean = report.summary.step_time.median = median;
  report.settings["schedule_choices"] = "10";
  return report;
}

TEST(Exploration, NamesTheFirstValueThatIsNotTheSameToTheLastBit) {
  const Report unseeded = report_with({2, 1.5});
  EXPECT_EQ(difference_of_values(report_with({2, 1.5}), unseeded), "");
  EXPECT_EQ(difference_of_values(report_with({2, std::nextafter(1.5, 2)}), unseeded),
            "loss of step 1 is 1.5000000000000002, and 1.5 without a seed");
  EXPECT_EQ(difference_of_values(report_with({2, 1.5}, 0.25), unseeded),
            "test_accuracy is 0.25, and 0.5 without a seed");
  EXPECT_EQ(difference_of_values(report_with({2}), unseeded), "there are 1 losses, and 2 without a seed");
  EXPECT_EQ(difference_of_values({}, report_with({})), "test_accuracy is there without a seed only");
}

TEST(Exploration, ALossThatIsNoNumberEqualsItself) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(difference_of_values(report_with({nan}), report_with({nan})), "");
  EXPECT_THAT(difference_of_values(report_with({nan}), report_with({1})), HasSubstr("nan, and 1"));
}

TEST(Exploration, KeepsTheRangeOfTheStepTimes) {
  Exploration exploration;
  for (const Nanoseconds time : {2000, 1000, 3000}) exploration.add(report_taking(time));
  EXPECT_EQ(exploration.completed, 3);
  EXPECT_EQ(exploration.choices, 30u);
  EXPECT_EQ(exploration.min_step_time, 1000);
  EXPECT_EQ(exploration.max_step_time, 3000);
}

TEST(Exploration, SaysWhichSeedFailsAndHowToSeeItAgain) {
  Exploration exploration;
  exploration.unseeded = report_with({1});
  exploration.schedules = 5;
  exploration.add(report_taking(1000));
  exploration.failure = {.seed = 2, .what = "a deadlock", .command = "tandem run job.yaml --schedule-seed 2"};
  const std::string text = exploration_text(exploration);
  EXPECT_THAT(text, HasSubstr("seed 2 fails, after 1 that did not: a deadlock\n"));
  EXPECT_THAT(text, HasSubstr("\n  tandem run job.yaml --schedule-seed 2\n"));
  const auto json = exploration_to_json(exploration);
  EXPECT_EQ(json["kind"], "exploration");
  EXPECT_EQ(json["failure"]["seed"], 2);
  EXPECT_EQ(json["failure"]["what"], "a deadlock");
}

}  // namespace
}  // namespace tandem
