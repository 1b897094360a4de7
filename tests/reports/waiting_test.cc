#include "reports/timeline/waiting.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "reports/run/explanation_text.h"
#include "reports/run/report_json.h"
#include "tests/reports/testing.h"

namespace tandem {
namespace {

using testing::HasSubstr;

// Device 1 computes until 60, device 0 until 40; their all_reduce takes 20 from then on. Twice.
std::vector<Record> two_steps() {
  std::vector<Record> records;
  for (int step = 0; step < 2; ++step) {
    const Nanoseconds begin = 100 * step;
    records.push_back(step_record(0, step, begin, begin + 90));
    records.push_back(work_record(Category::compute, 0, 0, step, begin, begin + 40));
    records.push_back(work_record(Category::compute, 1, 0, step, begin + 5, begin + 60));
    records.push_back(collective_record(step, 0, step, begin + 40, begin + 80));
    records.push_back(collective_record(step, 1, step, begin + 60, begin + 80));
    records.push_back(work_record(Category::update, 0, 0, step, begin + 82, begin + 90));
  }
  return records;
}

TEST(Waiting, DividesCollectivesAtTheLastArrival) {
  const Waiting waiting = waiting_of(two_device_timeline(two_steps()), {0, 1});
  ASSERT_EQ(waiting.ranks.size(), 2U);
  EXPECT_EQ(waiting.ranks[0].waiting, 20);
  EXPECT_EQ(waiting.ranks[0].transfer, 20);
  EXPECT_EQ(waiting.ranks[0].caused, 0);
  EXPECT_EQ(waiting.ranks[0].comes_last, 0);
  EXPECT_EQ(waiting.ranks[1].waiting, 0);
  EXPECT_EQ(waiting.ranks[1].transfer, 20);
  EXPECT_EQ(waiting.ranks[1].caused, 20);
  EXPECT_EQ(waiting.ranks[1].comes_last, 1);
  ASSERT_NE(slowest_rank(waiting.ranks), nullptr);
  EXPECT_THAT(slowest_rank(waiting.ranks)->device, HasSubstr("CPU:1"));
  ASSERT_EQ(waiting.calls.size(), 1U);
  EXPECT_THAT(waiting.calls.begin()->second, testing::ElementsAre(CallShare{0, 20, 20}, CallShare{1, 0, 20}));
}

TEST(Waiting, IsOfTheMeasuredStepsAndOfNobodyWhereAllComeTogether) {
  std::vector<Record> records = two_steps();
  EXPECT_EQ(waiting_of(two_device_timeline(records), {1}).ranks[0].waiting, 20);
  for (Record& record : records) {
    if (record.kind == RecordKind::collective) record.start_ns = 100 * record.step + 60;
  }
  const Waiting together = waiting_of(two_device_timeline(records), {0, 1});
  EXPECT_EQ(together.ranks[1].transfer, 20);
  EXPECT_EQ(together.ranks[1].comes_last, 0);
  EXPECT_EQ(slowest_rank(together.ranks), nullptr);
  EXPECT_EQ(slowest_rank({}), nullptr);
}

TEST(Waiting, CountsTheWorkersThatOneRepresents) {
  // Worker 0 represents three with a device each; worker 1 comes 20 later than they.
  Timeline timeline = two_device_timeline(two_steps());
  timeline.devices[1].worker = 1;
  timeline.classes = {{.representative = 0, .workers = 3}, {.representative = 1, .workers = 1}};
  for (Record& record : timeline.records) {
    record.worker = record.device == 1 ? 1 : 0;
    if (record.kind == RecordKind::collective) record.ranks = 4;
  }
  const Waiting waiting = waiting_of(timeline, {0, 1});
  EXPECT_EQ(waiting.ranks[0].devices, 3);
  EXPECT_EQ(waiting.ranks[1].caused, 20) << "three others wait 20 each";
}

TEST(Waiting, OfTheSimulatedExamplesIsNoLongerThanTheirSteps) {
  int waiting = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TANDEM_SOURCE_DIR "/tests/golden")) {
    if (entry.path().extension() != ".json") continue;
    const Report report = load_report(entry.path());
    for (const RankWaiting& rank : report.summary.ranks) {
      EXPECT_LE(rank.waiting, report.summary.step_time.mean) << entry.path() << " " << rank.device;
      EXPECT_LE(rank.transfer, report.summary.step_time.mean) << entry.path() << " " << rank.device;
      EXPECT_LE(rank.caused, report.summary.step_time.mean) << entry.path() << " " << rank.device;
      waiting += rank.waiting > 0 ? 1 : 0;
    }
  }
  EXPECT_GT(waiting, 0);
}

TEST(CriticalPath, GoesBackOverTheRankThatCameLast) {
  const auto path = critical_path_of(two_device_timeline(two_steps()), {0, 1}, Pace::in_step);
  ASSERT_TRUE(path.has_value());
  // Update 82 to 90, idle to 80, the transfer from 60, device 1's compute from 5, idle before.
  EXPECT_EQ(path->step, 0);
  EXPECT_EQ(path->update, 8);
  EXPECT_EQ(path->communication, 20);
  EXPECT_EQ(path->compute, 55);
  EXPECT_EQ(path->idle, 2 + 5);
  EXPECT_EQ(path->input + path->other, 0);
  EXPECT_THAT(path->ends_on, HasSubstr("CPU:0"));
  EXPECT_THAT(path->begins_on, HasSubstr("CPU:1"));
}

TEST(CriticalPath, HidesWhatRunsBesideIt) {
  const auto path =
      critical_path_of(two_device_timeline({step_record(0, 0, 0, 100), work_record(Category::input, 0, 2, 0, -10, 30),
                                            work_record(Category::compute, 0, 0, 0, 30, 90),
                                            work_record(Category::communication, 0, 1, 0, 40, 70),
                                            work_record(Category::other, 0, 0, 0, 90, 100)}),
                       {0}, Pace::in_step);
  EXPECT_EQ(path->other, 10);
  EXPECT_EQ(path->compute, 60);
  EXPECT_EQ(path->input, 30) << "from the begin of the step on";
  EXPECT_EQ(path->communication, 0);
  EXPECT_EQ(path->idle, 0);
}

TEST(CriticalPath, OfAStepWithoutWorkIsNone) {
  EXPECT_FALSE(critical_path_of(two_device_timeline({step_record(0, 0, 0, 100)}), {0}, Pace::in_step).has_value());
}

TEST(NormalText, NamesTheRankThatOthersWaitFor) {
  Report report = full_report();
  report.summary = summarize(two_device_timeline(two_steps()), 0);
  EXPECT_EQ(report.summary.collectives[0].waiting_ns, 10) << "the mean of both ranks";
  EXPECT_EQ(report.summary.collectives[0].ranks.size(), 2U);
  const std::string text = waiting_text(report);
  EXPECT_THAT(text, HasSubstr("waits 10.00 ns (11.1 %)"));
  EXPECT_THAT(text, HasSubstr("device:CPU:1, which"));
  EXPECT_THAT(text, HasSubstr("100.0 %"));
  EXPECT_EQ(critical_path_text(report),
            "critical path: compute 61.1 %, update 8.9 %, communication 22.2 % (exposed 33.3 %), idle 7.8 %\n");
}

}  // namespace
}  // namespace tandem
