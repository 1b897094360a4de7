// A scenario under many schedules.
#include "scenarios/run/explore.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/engine.h"

namespace tandem {
namespace {

Scenario small_digits() {
  Scenario scenario = load_scenario(TANDEM_SOURCE_DIR "/scenarios/examples/digits-sim.yaml");
  scenario.devices.per_worker = 3;
  scenario.steps = 3;
  scenario.warmup_steps = 1;
  return scenario;
}

class EveryOperation : public testing::TestWithParam<const char*> {};

TEST_P(EveryOperation, LearnsTheSameUnderEverySchedule) {
  Scenario scenario = small_digits();
  scenario.strategy.cross_device_ops = GetParam();
  const Exploration exploration = explore_schedules(scenario, {}, 10);
  EXPECT_FALSE(exploration.failure) << exploration.failure->what;
  EXPECT_EQ(exploration.completed, 10);
  EXPECT_TRUE(exploration.values_compared);
  EXPECT_GT(exploration.choices, 100u);
  EXPECT_GT(exploration.min_step_time, 0);
  EXPECT_FALSE(exploration.unseeded.settings.contains("schedule_seed"));
}
INSTANTIATE_TEST_SUITE_P(Digits, EveryOperation,
                         testing::Values("nccl", "hierarchical_copy", "reduction_to_one_device"));

TEST(Explore, ARunThatFailsIsAFindingWithItsSeed) {
  RunOptions options;
  options.schedule_seed = 40;
  int calls = 0;
  options.progress = [&](int runs, int schedules) {
    EXPECT_EQ(schedules, 5);
    if (runs == 2 && calls++ == 0) throw RunError("out of paper");
  };
  const Exploration exploration = explore_schedules(small_digits(), options, 5);
  ASSERT_TRUE(exploration.failure);
  EXPECT_EQ(exploration.failure->seed, 42u);
  EXPECT_EQ(exploration.failure->what, "out of paper");
  EXPECT_EQ(exploration.completed, 2);
}

TEST(Explore, WhatProgressGoesOnThrowingEndsTheExploration) {
  RunOptions options;
  options.progress = [](int runs, int) {
    if (runs == 1) throw RunError("interrupted");
  };
  EXPECT_THROW(explore_schedules(small_digits(), options, 5), RunError);
}

TEST(Explore, AnEngineWithoutASeededScheduleIsRefusedBeforeAnyRun) {
  Scenario scenario = small_digits();
  scenario.engine = {.name = "cpu", .values = {}, .collectives = {}};
  scenario.devices.type = DeviceType::cpu;
  RunOptions options;
  options.progress = [](int, int) { ADD_FAILURE() << "it ran"; };
  try {
    explore_schedules(scenario, options, 1);
    FAIL() << "not refused";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("engine 'cpu' has no seeded schedule"));
  }
}

}  // namespace
}  // namespace tandem
