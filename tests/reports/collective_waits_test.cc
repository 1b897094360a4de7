#include "reports/collective_waits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/reports/testing.h"

namespace tandem {
namespace {

TEST(Waits, ARankWaitsUntilTheLastArrivesAndTransfersFromThenOn) {
  const auto waits = waits_of(two_device_timeline({
                                  collective_record(1, 0, 4, 100, 160),
                                  collective_record(1, 1, 4, 130, 170),
                                  collective_record(2, 0, 4, 200, 220),
                                  collective_record(2, 1, 4, 190, 230),
                                  collective_record(3, 0, 5, 300, 340),
                                  collective_record(3, 1, 5, 305, 340),
                              }),
                              {4, 5});
  ASSERT_EQ(waits.size(), 2u);
  EXPECT_THAT(waits[0].waited_by_step, testing::ElementsAre(30, 5));
  EXPECT_THAT(waits[1].waited_by_step, testing::ElementsAre(10, 0));
  EXPECT_EQ(waits[0].waited(), 35);
  EXPECT_EQ(waits[0].transferred, 30 + 20 + 35);
  EXPECT_EQ(waits[1].transferred, 40 + 30 + 35);
  EXPECT_EQ(waits[0].calls, 3);
  EXPECT_EQ(waits[0].last_arrivals, 1);
  EXPECT_EQ(waits[1].last_arrivals, 2);
}

TEST(Waits, NobodyIsLastWhereAllArriveTogetherAndOtherStepsDoNotCount) {
  const auto waits = waits_of(two_device_timeline({
                                  collective_record(1, 0, 0, 0, 60),
                                  collective_record(1, 1, 0, 40, 60),
                                  collective_record(2, 0, 1, 100, 120),
                                  collective_record(2, 1, 1, 100, 130),
                              }),
                              {1});
  ASSERT_EQ(waits.size(), 2u);
  for (const RankWaits& one : waits) {
    EXPECT_EQ(one.calls, 1);
    EXPECT_EQ(one.last_arrivals, 0);
    EXPECT_EQ(one.waited(), 0);
  }
}

TEST(Waits, OneOfSeveralThatComeLastIsNamed) {
  std::vector<Record> records = {collective_record(1, 0, 0, 100, 160), collective_record(1, 1, 0, 130, 160),
                                 collective_record(1, 2, 0, 130, 160)};
  for (Record& record : records) record.ranks = 3;
  Timeline timeline = two_device_timeline(std::move(records));
  timeline.devices.push_back({"/job:localhost/replica:0/task:0/device:CPU:2", 0});
  const auto waits = waits_of(timeline, {0});
  ASSERT_EQ(waits.size(), 3u);
  EXPECT_EQ(waits[0].waited(), 30);
  EXPECT_EQ(waits[1].last_arrivals, 1);
  EXPECT_EQ(waits[1].caused, 15);  // the mean of the other two
  EXPECT_EQ(waits[2].last_arrivals, 0);
  EXPECT_EQ(waits[2].waited(), 0);
}

}  // namespace
}  // namespace tandem
