#include "reports/timeline/period.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "reports/run/continued.h"
#include "tests/reports/testing.h"

namespace tandem {
namespace {

constexpr Nanoseconds kPass = 100, kBegin = 50, kEnd = 30;

// A step in which both devices work in each pass, the second one 40 ns later, and then meet in a collective, which the
// first one reaches in this pass and the second one, for the last two thirds of it, in the next. Every second pass may
// take longer.
struct Passes {
  int count = 1;
  Nanoseconds longer = 0;  // by how much passes 1, 3, 5, ... are longer

  Nanoseconds begin_of(int pass) const { return pass * kPass + pass / 2 * longer; }
};

void add_step(std::vector<Record>& records, int step, Nanoseconds start, const Passes& passes) {
  const auto add = [&records](Record record, const char* name) {
    record.name = name;
    records.push_back(record);
  };
  add(work_record(Category::input, 0, 0, step, start, start + kBegin), "begin");
  for (int pass = 0; pass < passes.count; ++pass) {
    const Nanoseconds at = start + kBegin + passes.begin_of(pass), longer = pass % 2 * passes.longer;
    add(work_record(Category::compute, 0, 0, step, at, at + 60), "pass");
    add(work_record(Category::compute, 1, 0, step, at + 40, at + 110 + longer), "pass");
    const std::int64_t sequence = 100 * step + pass;
    records.push_back(collective_record(sequence, 0, step, at + 60, at + 130 + longer));
    records.push_back(collective_record(sequence, 1, step, at + 110 + longer, at + 130 + longer));
  }
  const Nanoseconds end = start + kBegin + passes.begin_of(passes.count) + kEnd;
  records.push_back(step_record(0, step, start, end));
}

Timeline steps_of(const Passes& passes) {
  std::vector<Record> records;
  const Nanoseconds length = kBegin + passes.begin_of(passes.count) + kEnd;
  for (int step = 0; step < 2; ++step) add_step(records, step, step * length, passes);
  Timeline timeline = two_device_timeline(std::move(records));
  sort_records(timeline.records);
  return timeline;
}

// Returns the ranks of each call, by the times at which they arrived.
std::set<std::multiset<Nanoseconds>> arrivals_of(const Timeline& timeline) {
  std::map<std::int64_t, std::multiset<Nanoseconds>> calls;
  for (const Record& record : timeline.records) {
    if (record.kind == RecordKind::collective) calls[record.sequence].insert(record.start_ns);
  }
  std::set<std::multiset<Nanoseconds>> arrivals;
  for (const auto& [sequence, times] : calls) arrivals.insert(times);
  return arrivals;
}

std::vector<std::tuple<std::string, int, Nanoseconds, Nanoseconds>> times_of_records(const Timeline& timeline) {
  std::vector<std::tuple<std::string, int, Nanoseconds, Nanoseconds>> times;
  for (const Record& one : timeline.records) times.emplace_back(one.name, one.device, one.start_ns, one.end_ns);
  std::ranges::sort(times);
  return times;
}

TEST(Period, WithoutItIsTheTimelineOfOnePassLess) {
  const auto shorter = without_a_period(steps_of({6}), 6, 1);
  ASSERT_TRUE(shorter);
  EXPECT_EQ(times_of_records(shorter->timeline), times_of_records(steps_of({5})));
  EXPECT_EQ(arrivals_of(shorter->timeline), arrivals_of(steps_of({5})))
      << "calls of which a rank arrives in the next pass";
}

TEST(Period, MayTakeSeveralPasses) {
  const auto shorter = without_a_period(steps_of({8}), 8, 2);
  ASSERT_TRUE(shorter);
  EXPECT_EQ(times_of_records(shorter->timeline), times_of_records(steps_of({6})));
}

TEST(Period, IsAMultipleWherePassesOfTwoLengthsTakeTurns) {
  const auto shorter = without_a_period(steps_of({.count = 9, .longer = 20}), 9, 1, 3);
  ASSERT_TRUE(shorter);
  EXPECT_EQ(shorter->period, 2);
  EXPECT_EQ(times_of_records(shorter->timeline), times_of_records(steps_of({.count = 7, .longer = 20})));
  EXPECT_FALSE(without_a_period(steps_of({.count = 9, .longer = 20}), 9, 1, 1));
  EXPECT_FALSE(without_a_period(steps_of({.count = 4, .longer = 20}), 4, 1, 3)) << "too few to compare";
}

TEST(Period, IsNotFoundWhereTimesDiffer) {
  Timeline timeline = steps_of({6});
  for (Record& record : timeline.records) {  // passes of the second device take longer and longer
    if (record.device == 1 && record.category == Category::compute) record.end_ns += record.start_ns / kPass * 3;
  }
  EXPECT_FALSE(without_a_period(timeline, 6, 1));
  EXPECT_FALSE(without_a_period(steps_of({6}), 5, 1)) << "no op comes five times";
  EXPECT_FALSE(without_a_period(steps_of({2}), 2, 1)) << "too few to compare";
  EXPECT_FALSE(without_a_period(two_device_timeline({}), 6, 1));
}

TEST(Period, IsFoundInEveryStepOrNotAtAll) {
  Timeline timeline = steps_of({6});
  for (Record& record : timeline.records) {
    if (record.step == 1 && record.device == 1) record.bytes += static_cast<double>(record.start_ns);
  }
  EXPECT_FALSE(without_a_period(timeline, 6, 1));
}

TEST(Continued, IsTheSummaryOfAllPasses) {
  const Summary simulated = summarize(steps_of({6}), 1), shorter = summarize(steps_of({5}), 1);
  const Summary all = summarize(steps_of({20}), 1), some = continued(simulated, shorter, 14);
  EXPECT_EQ(some.step_time, all.step_time);
  EXPECT_EQ(some.per_step, all.per_step);
  EXPECT_EQ(some.critical_path, all.critical_path);
  ASSERT_EQ(some.workers.size(), 1U);
  EXPECT_EQ(some.workers[0].per_step, all.workers[0].per_step);
  ASSERT_EQ(some.collectives.size(), 1U);
  EXPECT_EQ(some.collectives[0].calls_per_step, 20);
  EXPECT_EQ(some.collectives[0].waiting_ns, all.collectives[0].waiting_ns);
  EXPECT_EQ(some.collectives[0].ranks, all.collectives[0].ranks);
  ASSERT_EQ(some.ranks.size(), 2U);
  EXPECT_EQ(some.ranks[0].waiting, all.ranks[0].waiting);
  EXPECT_EQ(some.ranks[0].transfer, all.ranks[0].transfer);
  EXPECT_EQ(some.ranks[1].caused, all.ranks[1].caused);
}

}  // namespace
}  // namespace tandem
