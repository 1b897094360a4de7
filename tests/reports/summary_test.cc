#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "tests/reports/testing.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

Summary summary_of(std::vector<Record> records, int warmup_steps = 0) {
  return summarize(two_device_timeline(std::move(records)), warmup_steps);
}

TEST(Summary, AStepTakesAsLongAsItsSlowestWorkerAndWarmUpIsLeftOut) {
  const Summary summary = summary_of(
      {
          step_record(0, 0, 0, 9000),
          step_record(1, 0, 0, 9000),
          step_record(0, 1, 9000, 9100),
          step_record(1, 1, 9000, 9150),
          step_record(0, 2, 9150, 9350),
          step_record(1, 2, 9150, 9300),
          step_record(0, 3, 9350, 9450),
          step_record(1, 3, 9350, 9440),
      },
      1);
  EXPECT_EQ(summary.step_time.samples, 3);
  EXPECT_EQ(summary.step_time.median, 150);  // of 150, 200, 100
  EXPECT_EQ(summary.step_time.min, 100);
  EXPECT_EQ(summary.step_time.p95, 200);
  EXPECT_EQ(summary.step_time.median_absolute_deviation, 50);
}

TEST(Summary, WorkersThatAreNotInStepHaveStepsOfTheirOwn) {
  const Timeline timeline = two_device_timeline({
      step_record(0, 0, 0, 10),
      step_record(1, 0, 0, 500),
      step_record(0, 1, 10, 110),
      step_record(1, 1, 500, 900),
      step_record(0, 2, 110, 230),
      step_record(1, 2, 900, 1320),
  });
  Report report;
  report.summary = summarize(timeline, 1, Pace::each_its_own);
  EXPECT_EQ(report.summary.step_time.samples, 4);
  EXPECT_EQ(report.summary.step_time.median, 260);  // of 100, 120, 400, 420
  ASSERT_EQ(report.summary.workers.size(), 2u);
  EXPECT_EQ(report.summary.workers[0].step_time.median, 110);
  EXPECT_EQ(report.summary.workers[1].step_time.median, 410);
  report.asynchronous = true;
  report.workers = 2;
  report.units_per_step = 64;
  EXPECT_DOUBLE_EQ(report.throughput(), 32 / 110e-9 + 32 / 410e-9) << "each works on its share at its own pace";
  EXPECT_EQ(summarize(timeline, 1).step_time.median, 410) << "in step: 400, 420";
}

TEST(Summary, OverlappingStreamsCountOnceAndOnlyUncoveredCommunicationIsExposed) {
  const PerStep step = summary_of({
                                      step_record(0, 0, 0, 100),
                                      work_record(Category::input, 0, 2, 0, 0, 20),
                                      work_record(Category::compute, 0, 0, 0, 10, 50),
                                      work_record(Category::compute, 0, 3, 0, 40, 60),  // overlaps: union 50
                                      work_record(Category::communication, 0, 1, 0, 45, 80),
                                      work_record(Category::communication, 0, 4, 0, 70, 90),  // union 45
                                      work_record(Category::update, 0, 0, 0, 85, 95),
                                      work_record(Category::other, 0, 0, 0, 94, 98),
                                  })
                           .per_step;
  // Exposed communication is 60 to 85: before it compute runs, after it the update.
  EXPECT_EQ(step, (PerStep{.compute = 50,
                           .update = 10,
                           .exposed_input = 10,
                           .exposed_communication = 25,
                           .other = 3,
                           .idle = 2,
                           .input = 20,
                           .communication = 45}));
}

TEST(Summary, WhatRunsDuringAStepCountsWhicheverStepIssuedIt) {
  const PerStep step = summary_of({
                                      step_record(0, 0, 0, 100),
                                      step_record(0, 1, 100, 200),
                                      work_record(Category::communication, 0, 1, 0, 90, 130),
                                      work_record(Category::compute, 0, 0, 1, 100, 120),
                                      work_record(Category::communication, 0, 1, 1, 150, 190),
                                  })
                           .per_step;
  EXPECT_EQ(step.compute, (0 + 20) / 2);
  EXPECT_EQ(step.communication, (10 + 70) / 2);
  EXPECT_EQ(step.exposed_communication, (10 + 50) / 2);
  EXPECT_EQ(step.idle, (90 + 30) / 2);
}

TEST(Summary, ADeviceIsIdleWhileNothingRunsOnItWithinTheStep) {
  const Summary summary = summary_of({
      step_record(0, 0, 100, 200), work_record(Category::compute, 0, 0, 0, 90, 120),  // 20 of it in the step
      work_record(Category::communication, 0, 1, 0, 110, 150), work_record(Category::other, 0, 0, 0, 160, 170),
      work_record(Category::compute, 1, 0, 0, 100, 220),  // never idle
  });
  EXPECT_EQ(summary.per_step.idle, (40 + 0) / 2);
}

TEST(Summary, PartsAreTheMeanOverTheDevicesThatTrain) {
  const PerStep step = summary_of({
                                      step_record(0, 0, 0, 100), work_record(Category::compute, 0, 0, 0, 0, 40),
                                      work_record(Category::compute, 1, 0, 0, 0, 60),
                                      work_record(Category::update, 1, 0, 0, 60, 90),  // on one device only
                                  })
                           .per_step;
  EXPECT_EQ(step, (PerStep{.compute = 50, .update = 15, .idle = 35}));
}

Nanoseconds sum_of(const PerStep& step) {
  Nanoseconds sum = 0;
  for (const StepPart& part : step_parts()) sum += step.*part.time;
  return sum;
}

TEST(Summary, PartsOfStepsOfUnequalLengthsAddUpToTheMeanStep) {
  std::vector<Record> records;
  Nanoseconds now = 0;
  const std::array<Nanoseconds, 7> lengths{100, 103, 900, 101, 107, 40, 102};
  for (int step = 0; step < 7; ++step) {
    const Nanoseconds end = now + lengths.at(static_cast<std::size_t>(step));
    records.push_back(step_record(0, step, now, end));
    records.push_back(work_record(Category::compute, 0, 0, step, now, now + 31));
    records.push_back(work_record(Category::communication, 0, 1, step, now + 17, end - 3));
    now = end;
  }
  const Summary summary = summary_of(records);
  EXPECT_EQ(summary.step_time.median, 102);
  EXPECT_EQ(summary.step_time.mean, 208) << "1453 / 7";
  EXPECT_EQ(sum_of(summary.per_step), 208);
  EXPECT_EQ(summary.per_step.compute, 31) << "in each step";
  EXPECT_EQ(summary.per_step.exposed_communication, 174);
  EXPECT_EQ(summary.per_step.idle, 3);
}

// Devices 0 and 1 of two_device_timeline(), but of two workers.
Timeline two_worker_timeline(std::vector<Record> records) {
  Timeline timeline = two_device_timeline(std::move(records));
  timeline.devices[1] = {"/job:ps/replica:0/task:0/device:CPU:0", 1};
  for (Record& record : timeline.records) {
    if (record.kind != RecordKind::step) record.worker = record.device;
  }
  return timeline;
}

TEST(Summary, AWorkerThatIsDoneEarlierWaitsForTheOthers) {
  const Summary summary = summarize(two_worker_timeline({
                                        step_record(0, 0, 0, 100),
                                        step_record(1, 0, 0, 60),
                                        work_record(Category::compute, 0, 0, 0, 0, 90),
                                        work_record(Category::compute, 1, 0, 0, 0, 50),
                                    }),
                                    0);
  EXPECT_EQ(summary.per_step, (PerStep{.compute = 70, .idle = (10 + 10 + 40) / 2}));
  ASSERT_EQ(summary.workers.size(), 2u);
  EXPECT_EQ(summary.workers[0].per_step, (PerStep{.compute = 90, .idle = 10}));
  EXPECT_EQ(summary.workers[1].per_step, (PerStep{.compute = 50, .idle = 10})) << "of its own step";
}

TEST(Summary, WhoWorksBeforeTheFirstStepOnlyIsNotMentioned) {
  const Summary summary = summarize(two_worker_timeline({
                                        step_record(0, 0, 100, 200),
                                        work_record(Category::compute, 0, 0, 0, 100, 150),
                                        work_record(Category::communication, 1, 0, 0, 20, 100),
                                    }),
                                    0);
  EXPECT_FALSE(summary.other_devices);
}

TEST(Summary, WhatAServerDoesIsApart) {
  const Summary summary = summarize(
      two_worker_timeline({
          step_record(0, 0, 100, 200), step_record(0, 1, 200, 300), work_record(Category::compute, 0, 0, 0, 100, 150),
          work_record(Category::compute, 0, 0, 1, 200, 250), work_record(Category::update, 1, 0, 0, 160, 190),
          work_record(Category::update, 1, 0, 1, 260, 310),  // 40 within the steps
      }),
      0);
  EXPECT_EQ(summary.per_step, (PerStep{.compute = 50, .idle = 50}));
  ASSERT_TRUE(summary.other_devices);
  EXPECT_EQ(summary.other_devices->busiest, "/job:ps/replica:0/task:0/device:CPU:0");
  EXPECT_EQ(summary.other_devices->count, 1);
  EXPECT_EQ(summary.other_devices->per_step, (PerStep{.update = (30 + 40) / 2, .idle = 65}));
}

TEST(Summary, ACollectiveRunsFromTheLastArrivalToTheLastEnd) {
  const Summary summary = summary_of({
      step_record(0, 0, 0, 10000),
      collective_record(1, 0, 0, 100, 1200),
      collective_record(1, 1, 0, 200, 1190),  // 200..1200
      step_record(0, 1, 10000, 20000),
      collective_record(2, 0, 1, 11000, 12000),
      collective_record(2, 1, 1, 10500, 12010),  // 11000..12010
      collective_record(3, 0, kNoStep, 20000, 29000),
  });
  ASSERT_EQ(summary.collectives.size(), 1u);
  const CollectiveSummary& collective = summary.collectives.front();
  EXPECT_EQ(collective.operation, "all_reduce");
  EXPECT_EQ(collective.bytes, 1 << 20);
  EXPECT_EQ(collective.devices, 2);
  EXPECT_EQ(collective.calls_per_step, 1);
  EXPECT_EQ(collective.time_ns, (1000 + 1010) / 2);
  EXPECT_DOUBLE_EQ(collective.algbw, 1048576 / 1005e-9);
  EXPECT_DOUBLE_EQ(collective.busbw, collective.algbw);  // 2 (n - 1) / n = 1 for two
}

TEST(Summary, CollectivesAreSortedByOperationDevicesAndBytes) {
  std::vector<Record> records = {step_record(0, 0, 0, 100)};
  const auto add = [&](std::int64_t sequence, const char* operation, int ranks, double bytes) {
    Record record = collective_record(sequence, 0, 0, 0, 10);
    record.name = operation;
    record.ranks = ranks;
    record.bytes = bytes;
    records.push_back(record);
  };
  add(1, "broadcast", 2, 8);
  add(2, "all_reduce", 4, 16);
  add(3, "all_reduce", 2, 1024);
  add(4, "all_reduce", 2, 512);
  add(5, "all_reduce", 2, 512);
  const Summary summary = summary_of(records);
  std::vector<std::tuple<std::string, int, std::int64_t, int>> order;
  for (const CollectiveSummary& collective : summary.collectives) {
    order.emplace_back(collective.operation, collective.devices, collective.bytes, collective.calls_per_step);
  }
  EXPECT_THAT(order, testing::ElementsAre(std::tuple("all_reduce", 2, 512, 2), std::tuple("all_reduce", 2, 1024, 1),
                                          std::tuple("all_reduce", 4, 16, 1), std::tuple("broadcast", 2, 8, 1)));
}

TEST(Summary, ACollectiveThatTakesNoTimeHasNoBandwidth) {
  const Summary summary = summary_of({step_record(0, 0, 0, 100), collective_record(1, 0, 0, 50, 50)});
  EXPECT_EQ(summary.collectives.at(0).time_ns, 0);
  EXPECT_EQ(summary.collectives.at(0).algbw, 0);
}

TEST(Summary, RefusesARunOfWarmUpOnly) {
  const Timeline timeline = two_device_timeline({step_record(0, 0, 0, 10), step_record(0, 1, 10, 20)});
  EXPECT_NO_THROW(summarize(timeline, 1));
  try {
    summarize(timeline, 2);
    FAIL() << "2 steps of which 2 are warm-up were summarized";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "no step is left to report: 2 steps were run and the first 2 are warm-up");
  }
}

TEST(Report, ThroughputIsTheWorkOfAStepOverItsMeanTime) {
  Report report = full_report();
  EXPECT_DOUBLE_EQ(report.throughput(), 64 / 2e-3);
  report.summary.step_time.mean = report.summary.step_time.median = 0;
  EXPECT_EQ(report.throughput(), 0);
}

}  // namespace
}  // namespace tandem
