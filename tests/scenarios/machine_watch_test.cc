#include "scenarios/job/machine_watch.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tandem {
namespace {

using std::chrono::milliseconds;

MachineCounts counts_at(int ms, Nanoseconds busy, Nanoseconds own, std::map<int, Nanoseconds> waited) {
  MachineCounts counts;
  counts.time = std::chrono::steady_clock::time_point(milliseconds(ms));
  counts.cores = 2;
  counts.busy = busy;
  counts.own = own;
  counts.waited = std::move(waited);
  return counts;
}

TEST(MachineWatch, TheUseIsTheDifferenceOfTheCounts) {
  const MachineCounts begin = counts_at(100, 1000, 400, {{7, 50}, {8, 60}});
  const MachineCounts end = counts_at(200, 1900, 1000, {{8, 70}, {9, 5}});  // 7 ended, 9 began
  EXPECT_EQ(use_between(begin, end),
            (MachineUse{.cores = 2, .time = 100'000'000, .own = 600, .waited = 15, .others = 300}));
}

TEST(MachineWatch, OtherRanksOfALaunchAreNoOthers) {
  MachineCounts begin = counts_at(100, 1000, 400, {{7, 50}}), end = counts_at(200, 1900, 1000, {{7, 950}});
  begin.launch = 300;
  end.launch = 550;
  EXPECT_EQ(use_between(begin, end).others, 50);
}

TEST(MachineWatch, WhatIsLostIsWhatOthersTookWhileTheRunWaited) {
  EXPECT_EQ((MachineUse{.own = 900}.lost()), 0);
  EXPECT_DOUBLE_EQ((MachineUse{.own = 900, .waited = 100, .others = 5000}.lost()), 0.1);
  EXPECT_DOUBLE_EQ((MachineUse{.own = 900, .waited = 5000, .others = 100}.lost()), 0.1)
      << "too many threads of its own";
  EXPECT_EQ((MachineUse{.own = 900, .others = 5000}.lost()), 0) << "on other processors";
  EXPECT_DOUBLE_EQ((MachineUse{.own = 900, .others = 900, .stolen = 200}.lost()), 0.1) << "half of it from others";
  EXPECT_EQ(MachineUse{}.lost(), 0);
  EXPECT_TRUE((MachineUse{.own = 940, .waited = 60, .others = 60}.is_disturbed()));
  EXPECT_FALSE((MachineUse{.own = 960, .waited = 40, .others = 40}.is_disturbed()));
}

void work_for(milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

// Two processes on one processor: each waits about half of the time.
TEST(MachineWatch, ARunBesideAnotherProgramIsDisturbed) {
  if (!machine_counts()) GTEST_SKIP() << "this system has no counts under /proc";
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  if (sched_setaffinity(0, sizeof one, &one) != 0) GTEST_SKIP() << "this process may not choose its processor";
  const pid_t child = fork();
  if (child == 0) {
    work_for(milliseconds(1000));
    _exit(0);
  }
  ASSERT_GT(child, 0);
  const auto begin = machine_counts();
  work_for(milliseconds(600));
  const MachineUse use = use_between(*begin, *machine_counts());
  waitpid(child, nullptr, 0);
  sched_setaffinity(0, sizeof before, &before);
  EXPECT_GT(use.lost(), 0.2);
  EXPECT_GT(use.waited, use.time / 5);
  EXPECT_GT(use.involuntary_switches, 0);
  EXPECT_EQ(use.frequency_hz[0], begin->frequency_hz);
}

TEST(MachineWatch, MeasuresAgainOnlyWhileOthersDisturb) {
  if (!machine_counts()) GTEST_SKIP() << "this system has no counts under /proc";
  int calls = 0;
  const auto use = measure_undisturbed(3, [&](std::vector<GpuUse>&) {
    ++calls;
    work_for(milliseconds(20));
  });
  ASSERT_TRUE(use);
  EXPECT_GE(calls, 1);
  EXPECT_TRUE(calls == 3 || !use->is_disturbed());
  calls = 0;
  measure_undisturbed(1, [&](std::vector<GpuUse>&) { ++calls; });
  EXPECT_EQ(calls, 1);
}

TEST(MachineWatch, AddsUpWhatTheDriversOfGpusSaidOfSeveralRuns) {
  std::vector<GpuUse> uses;
  add_use(uses, {.gpu = "GPU 0", .readings = 3, .slowed = 1, .slowed_by = {"heat"}, .others_share = 0.5});
  add_use(uses, {.gpu = "GPU 1", .readings = 3});
  add_use(uses, {.gpu = "GPU 0",
                 .readings = 1,
                 .slowed = 1,
                 .slowed_by = {"heat", "the hardware"},
                 .power_limited = 1,
                 .other_programs = 2,
                 .others_share = 0.25});
  ASSERT_EQ(uses.size(), 2U);
  EXPECT_EQ(uses[0], (GpuUse{.gpu = "GPU 0",
                             .readings = 4,
                             .slowed = 2,
                             .slowed_by = {"heat", "the hardware"},
                             .power_limited = 1,
                             .other_programs = 2,
                             .others_share = 0.4375}));
}

TEST(MachineWatch, TheHeatOfAGpuDisturbsToo) {
  if (!machine_counts()) GTEST_SKIP() << "this system has no counts under /proc";
  int calls = 0;
  const auto use = measure_undisturbed(4, [&](std::vector<GpuUse>& gpus) {
    for (const int slowed : {0, 2}) {
      gpus.push_back({.gpu = "GPU 0", .readings = 10, .slowed = slowed, .slowed_by = {"heat"}});
    }
    ++calls;
  });
  EXPECT_EQ(calls, 4);
  EXPECT_TRUE(use->is_disturbed());
  ASSERT_EQ(use->gpus.size(), 1U);
  EXPECT_EQ(use->gpus[0].readings, 20);
}

}  // namespace
}  // namespace tandem
