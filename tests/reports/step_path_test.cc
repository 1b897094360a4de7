#include "reports/run/step_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/reports/testing.h"

namespace tandem {
namespace {

std::vector<Interval> times_of(const StepPath& path) {
  std::vector<Interval> times;
  for (const PathPart& part : path.parts) times.push_back(part.time);
  return times;
}

Nanoseconds total_of(const StepPath& path) {
  Nanoseconds total = path.idle;
  for (const auto& [category, time] : path.by_category) total += time;
  return total;
}

TEST(StepPath, GoesFromACollectiveToTheDeviceThatArrivedLast) {
  const Timeline timeline = two_device_timeline({
      work_record(Category::compute, 0, 0, 0, 10, 40),
      work_record(Category::compute, 1, 0, 0, 10, 70),  // the slow one
      collective_record(1, 0, 0, 40, 90),
      collective_record(1, 1, 0, 70, 90),
      work_record(Category::update, 0, 0, 0, 90, 98),
      work_record(Category::update, 1, 0, 0, 90, 95),
  });
  const StepPath path = step_path(timeline, {0, 100});
  EXPECT_THAT(times_of(path), testing::ElementsAre(Interval{10, 70}, Interval{70, 90}, Interval{90, 98}));
  EXPECT_EQ(path.parts[0].record->device, 1);
  EXPECT_EQ(path.parts[2].record->device, 0);
  EXPECT_EQ(path.by_category.at(Category::compute), 60);
  EXPECT_EQ(path.by_category.at(Category::communication), 20);
  EXPECT_EQ(path.by_category.at(Category::update), 8);
  EXPECT_EQ(path.idle, 12) << "10 before the work, 2 after it";
  EXPECT_EQ(total_of(path), 100);
}

TEST(StepPath, LeavesOutWhatRunsBesideIt) {
  const Timeline timeline = two_device_timeline({
      work_record(Category::input, 0, 2, 0, 0, 30), work_record(Category::compute, 0, 0, 0, 0, 50),
      work_record(Category::communication, 0, 1, 0, 50, 60),
      work_record(Category::compute, 0, 0, 0, 55, 100),  // began before the communication ended
  });
  const StepPath path = step_path(timeline, {0, 100});
  EXPECT_THAT(times_of(path), testing::ElementsAre(Interval{0, 50}, Interval{55, 100}));
  EXPECT_EQ(path.idle, 5);
}

TEST(StepPath, GoesToWhatEndedLastElsewhereWhereItsDeviceWasIdle) {
  const Timeline timeline = two_device_timeline({
      work_record(Category::compute, 0, 0, 0, 0, 60), work_record(Category::update, 1, 0, 0, 5, 20),
      work_record(Category::update, 1, 0, 0, 65, 90),  // of a value that the other device computed
  });
  const StepPath path = step_path(timeline, {0, 100});
  EXPECT_THAT(times_of(path), testing::ElementsAre(Interval{0, 60}, Interval{65, 90}));
  EXPECT_EQ(path.idle, 15);
}

TEST(StepPath, EndsAtTheBeginOfTheStepAndOfAStepWithoutWorkKnowsNothing) {
  const Timeline timeline = two_device_timeline({
      work_record(Category::compute, 0, 0, 0, 20, 80),
      work_record(Category::compute, 0, 0, 1, 80, 90),
  });
  const StepPath path = step_path(timeline, {50, 90});
  EXPECT_THAT(times_of(path), testing::ElementsAre(Interval{50, 80}, Interval{80, 90}));
  EXPECT_EQ(step_path(timeline, {200, 260}).idle, 60);
}

// Ranks of a call end apart, and one ends at the instant at which the last arrives: still every part lies before the
// next.
TEST(StepPath, AlwaysGoesBackInTime) {
  const Timeline timeline = two_device_timeline({
      collective_record(1, 0, 0, 0, 50),
      collective_record(1, 1, 0, 50, 60),
      collective_record(2, 1, 0, 10, 50),
      collective_record(2, 0, 0, 50, 70),
  });
  const StepPath path = step_path(timeline, {0, 70});
  EXPECT_EQ(total_of(path), 70);
  for (std::size_t i = 1; i < path.parts.size(); ++i) EXPECT_LE(path.parts[i - 1].time.end, path.parts[i].time.start);
}

}  // namespace
}  // namespace tandem
