// What decides a check of pairs: exact counts, processor time, wall-clock time.
#include "reports/checks/paired_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "reports/timeline/op_time.h"
#include "tests/reports/testing.h"

namespace tandem {
namespace {

// Pairs of launches whose new ones take so many times the processor time and the step time of the old ones.
std::vector<Launch> pairs_of(int pairs, double cpu, double wall, bool disturbed) {
  std::vector<Launch> launches;
  for (int i = 0; i < 2 * pairs; ++i) {
    Launch launch{.is_new = i % 2 == 1, .report = full_report()};
    launch.report.steps = 12;
    launch.report.warmup_steps = 2;
    launch.report.counts = WorkCounts{{"copies of 4096 B", 120}};
    MachineUse use{.cores = 2, .time = 1'000'000, .own = 1'000'000};
    if (disturbed) use.waited = use.others = 500'000;
    if (launch.is_new) {
      use.own = static_cast<Nanoseconds>(1e6 * cpu);
      auto& median = launch.report.summary.step_time.median;
      median = static_cast<Nanoseconds>(static_cast<double>(median) * wall);
      launch.report.summary.step_time.mean = median;
    }
    launch.report.machine_use = use;
    launches.push_back(std::move(launch));
  }
  return launches;
}

TEST(PairedGate, OneMoreCopyIsFoundInOnePair) {
  std::vector<Launch> launches = pairs_of(1, 1, 1, true);
  EXPECT_FALSE(decide(launches, {}, 0.03, 1)) << "equal counts leave the decision to the times";
  (*launches[1].report.counts)["copies of 4096 B"] = 130;
  const auto more = decide(launches, {}, 0.03, 1);
  ASSERT_TRUE(more);
  EXPECT_EQ(more->verdict, Verdict::regressed);
  EXPECT_EQ(more->decided_by, "counts");
  EXPECT_THAT(paired_reason(*more), testing::HasSubstr("copies of 4096 B: 12 -> 13 per step"));
  (*launches[1].report.counts)["copies of 4096 B"] = 110;
  EXPECT_EQ(decide(launches, {}, 0.03, 1)->verdict, Verdict::improved);
  EXPECT_FALSE(decide(launches, {.counts = false}, 0.03, 1));
}

TEST(PairedGate, OnABusyMachineProcessorTimeDecides) {
  const auto same = decide(pairs_of(8, 1, 1.5, true), {}, 0.03, 1);
  ASSERT_TRUE(same);
  EXPECT_EQ(same->verdict, Verdict::ok) << "others took the wall-clock time";
  EXPECT_EQ(same->decided_by, "cpu-time");
  const auto slower = decide(pairs_of(8, 1.05, 1, true), {}, 0.03, 1);
  ASSERT_TRUE(slower);
  EXPECT_EQ(slower->verdict, Verdict::regressed);
  EXPECT_NEAR(slower->cpu_change->estimate, 0.05, 1e-9);
  EXPECT_NEAR(slower->change.estimate, 0, 1e-9) << "which is that of the step time";
}

TEST(PairedGate, OnAQuietMachineBothMustBeOk) {
  EXPECT_EQ(decide(pairs_of(8, 1, 1, false), {}, 0.03, 1)->verdict, Verdict::ok);
  const auto waits = decide(pairs_of(8, 1, 1.5, false), {}, 0.03, 1);
  EXPECT_EQ(waits->verdict, Verdict::regressed);
  EXPECT_EQ(waits->decided_by, "wall-clock");
  EXPECT_EQ(decide(pairs_of(8, 1.5, 1, false), {}, 0.03, 1)->decided_by, "cpu-time");
}

// `spread`: how far apart the processor times of launches are.
std::vector<Launch> pairs_with_ops(double ops, double spread) {
  std::vector<Launch> launches = pairs_of(32, 1, 1, true);
  for (std::size_t i = 0; i < launches.size(); ++i) {
    Report& report = launches[i].report;
    report.op_time = static_cast<Nanoseconds>(1e6 * (launches[i].is_new ? ops : 1));
    report.machine_use->own = static_cast<Nanoseconds>(1e6 * (1 + spread * static_cast<double>(i * 7 % 11)));
  }
  return launches;
}

TEST(PairedGate, TheTimeOfOpsDecidesWhereProcessorTimeIsTooNoisy) {
  const auto same = decide(pairs_with_ops(1, 0.1), {}, 0.03, 1);
  ASSERT_TRUE(same);
  EXPECT_EQ(same->verdict, Verdict::ok);
  EXPECT_EQ(same->decided_by, "op-time");
  EXPECT_THAT(same->undecided, testing::ElementsAre("cpu-time"));
  EXPECT_THAT(paired_reason(*same), testing::HasSubstr("cpu-time is too noisy here to decide"));
  const auto slower = decide(pairs_with_ops(1.05, 0.1), {}, 0.03, 1);
  ASSERT_TRUE(slower);
  EXPECT_EQ(slower->verdict, Verdict::regressed);
  EXPECT_EQ(slower->pairs, 32);
  EXPECT_LT(slower->op_change->upper, 0.051);
  EXPECT_NEAR(slower->op_change->estimate, 0.05, 1e-9);
}

TEST(PairedGate, EqualOpsDoNotHideProcessorTimeBesideThem) {
  std::vector<Launch> launches = pairs_of(8, 1.1, 1, true);
  for (Launch& launch : launches) launch.report.op_time = 1'000'000;
  const auto result = decide(launches, {}, 0.03, 1);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->verdict, Verdict::regressed);
  EXPECT_EQ(result->decided_by, "cpu-time");
}

TEST(PairedGate, FewerPairsThanNoisyTimesNeedLeaveTheCheckOpen) {
  std::vector<Launch> launches = pairs_with_ops(1, 0.1);
  launches.resize(16);
  EXPECT_FALSE(decide(launches, {}, 0.03, 1)) << "processor time may still show a regression";
  EXPECT_TRUE(decide(launches, {.counts = true, .ops = true, .cpu = false, .wall = false}, 0.03, 1));
}

TEST(PairedGate, ProcessorTimeThatIsNotKnownDecidesNothing) {
  std::vector<Launch> launches = pairs_of(8, 1, 1.5, false);
  for (Launch& launch : launches) launch.report.machine_use.reset();
  const auto result = decide(launches, {.counts = false, .ops = false, .cpu = true, .wall = false}, 0.03, 1);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->verdict, Verdict::inconclusive);
  EXPECT_THAT(paired_reason(*result), testing::HasSubstr("do not say their processor time"));
  EXPECT_EQ(decide(launches, {}, 0.03, 1)->decided_by, "wall-clock");
}

TEST(PairedGate, CountsOfAsynchronousRunsDoNotDecide) {
  std::vector<Launch> launches = pairs_of(1, 1, 1, false);
  (*launches[1].report.counts)["copies of 4096 B"] = 130;
  launches[0].report.asynchronous = launches[1].report.asynchronous = true;
  EXPECT_TRUE(changed_counts(launches).empty());
}

TEST(WorkCounts, DoNotDependOnTheOrderOfRecords) {
  Timeline timeline;
  for (int step = 0; step < 3; ++step) {
    for (int device = 0; device < 2; ++device) {
      timeline.records.push_back({.kind = RecordKind::copy, .device = device, .step = step, .bytes = 4096});
      timeline.records.push_back({.kind = RecordKind::collective,
                                  .name = "all_reduce",
                                  .device = device,
                                  .step = step,
                                  .bytes = 64,
                                  .ranks = 2,
                                  .sequence = step});
    }
  }
  const WorkCounts counts = work_counts(timeline, 1);
  EXPECT_EQ(counts, (WorkCounts{{"all_reduce 64 B x 2", 2}, {"copied bytes", 16384}, {"copies of 4096 B", 4}}));
  std::reverse(timeline.records.begin(), timeline.records.end());
  EXPECT_EQ(work_counts(timeline, 1), counts);
}

TEST(WorkCounts, NameOpsAndTheMemoryOfTheRun) {
  Timeline timeline = two_device_timeline({work_record(Category::compute, 0, 0, 1, 0, 10)});
  timeline.records.front().name = "gemm";
  timeline.records.front().bytes = 96;
  timeline.devices[0].allocations = 3;
  timeline.devices[0].allocated_bytes = 300;
  timeline.devices[0].memory_peak_bytes = 200;
  timeline.devices[1].allocations = 2;
  timeline.devices[1].allocated_bytes = 50;
  timeline.devices[1].memory_peak_bytes = 50;
  EXPECT_EQ(work_counts(timeline, 1), (WorkCounts{{"bytes of compute", 96},
                                                  {"bytes of tensors in the run", 350},
                                                  {"op gemm", 1},
                                                  {"ops of compute", 1},
                                                  {"peak bytes of task:0 CPU:0 in the run", 200},
                                                  {"peak bytes of task:0 CPU:1 in the run", 50},
                                                  {"tensors in the run", 5}}));
  EXPECT_EQ(count_change_text({.name = "tensors in the run", .before = 40, .now = 80}, 4),
            "tensors in the run: 40 -> 80");
  EXPECT_EQ(count_change_text({.name = "op gemm", .before = 40, .now = 80}, 4), "op gemm: 10 -> 20 per step");
}

TEST(WorkCounts, DifferWhereWorkDoes) {
  const WorkCounts before{{"ops of compute", 20},
                          {"op gemm", 10},
                          {"op relu", 10},
                          {"tensors in the run", 5},
                          {"peak bytes of CPU:1 in the run", 1000}};
  WorkCounts now = before;
  now["peak bytes of CPU:1 in the run"] = 1090;
  EXPECT_TRUE(count_changes(now, before).empty()) << "threads free a little later";
  now["peak bytes of CPU:1 in the run"] = 1200;
  EXPECT_EQ(count_changes(now, before).size(), 1u);
  now = before;
  now.erase("op relu");
  now["op rectifier"] = 10;
  EXPECT_TRUE(count_changes(now, before).empty()) << "another name is no other work";
  now["ops of compute"] = 19;
  now["op rectifier"] = 9;
  EXPECT_EQ(count_changes(now, before).size(), 3u);
  EXPECT_TRUE(is_less(count_changes(now, before)));
  EXPECT_TRUE(count_changes(before, {{"ops of compute", 20}}).empty()) << "of a version without names and memory";
}

Record op_record(const char* name, int step, Nanoseconds start, Nanoseconds duration) {
  Record record = work_record(Category::compute, 0, 0, step, start, start + duration);
  record.name = name;
  return record;
}

TEST(OpTime, AddsTheLeastTimeOfEachOpOfAStep) {
  Timeline timeline = two_device_timeline({
      op_record("gemm", 0, 0, 1),                                    // warm-up
      op_record("gemm", 1, 10, 30), op_record("gemm", 1, 50, 7),     // the first and the second gemm of a step
      op_record("gemm", 2, 100, 20), op_record("gemm", 2, 150, 90),  //
      op_record("average", 2, 300, 10),                              // in every other step
      collective_record(1, 0, 1, 60, 1000),                          //
  });
  EXPECT_EQ(op_time(timeline, 1), 20 + 7 + 10 / 2);
  EXPECT_EQ(op_time(timeline, 3), 0);
}

}  // namespace
}  // namespace tandem
