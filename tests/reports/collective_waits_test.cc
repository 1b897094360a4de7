#include "reports/timeline/collective_waits.h"

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

Record transfer_record(const char* name, std::int64_t sequence, int device, Nanoseconds start, Nanoseconds end) {
  Record record = collective_record(sequence, device, 0, start, end);
  record.name = name;
  return record;
}

// Device 0 has several calls open, one on each of several streams.
TEST(Waits, AMomentAtWhichSeveralCallsWaitCountsOnce) {
  const auto waits = waits_of(two_device_timeline({
                                  collective_record(1, 0, 0, 0, 60),
                                  collective_record(1, 1, 0, 50, 60),
                                  collective_record(2, 0, 0, 10, 80),
                                  collective_record(2, 1, 0, 70, 80),
                                  collective_record(3, 0, 0, 20, 75),
                                  collective_record(3, 1, 0, 65, 75),
                                  collective_record(4, 0, 0, 90, 120),
                                  collective_record(4, 1, 0, 100, 120),
                              }),
                              {0});
  ASSERT_EQ(waits.size(), 2u);
  EXPECT_THAT(waits[0].waited_by_step, testing::ElementsAre(70 + 10)) << "from 0 to 70, and from 90 to 100";
  EXPECT_EQ(waits[0].transferred, 10 + 15 + 20) << "50 to 60, 65 to 80, 100 to 120";
  EXPECT_EQ(waits[1].caused, 70 + 10);
  EXPECT_EQ(waits[1].last_arrivals, 4);
  EXPECT_EQ(waits[1].waited(), 0);
}

TEST(Waits, AMomentBelongsToTheStepThatBeganToWaitFirst) {
  Record early = collective_record(2, 0, 0, 20, 60);
  early.step = 1;
  Record sent = collective_record(2, 1, 0, 50, 60);
  sent.step = 1;
  const auto waits = waits_of(
      two_device_timeline({collective_record(1, 0, 0, 0, 45), collective_record(1, 1, 0, 40, 45), early, sent}),
      {0, 1});
  EXPECT_THAT(waits[0].waited_by_step, testing::ElementsAre(40, 10));
  EXPECT_EQ(waits[0].waited(), 50) << "of the 50 until the second arrival";
}

// A stage posts a receive as soon as it has nothing else to do: that does not make the sender a straggler.
TEST(Waits, TransfersBetweenTwoRanksAreNoMeetingOfAGroup) {
  const auto waits = waits_of(two_device_timeline({
                                  transfer_record("receive", 1, 0, 0, 60),
                                  transfer_record("send", 1, 1, 50, 60),
                                  collective_record(2, 0, 0, 90, 120),
                                  collective_record(2, 1, 0, 100, 120),
                              }),
                              {0});
  ASSERT_EQ(waits.size(), 2u);
  EXPECT_EQ(waits[0].waited(), 10);
  EXPECT_EQ(waits[0].transferred, 20);
  EXPECT_EQ(waits[0].calls, 1);
  EXPECT_EQ(waits[1].caused, 10);
  EXPECT_EQ(waits[1].last_arrivals, 1);
}

// Two devices wait for the third in calls of their own.
TEST(Waits, WhatADeviceCausesIsTheMeanOfThoseThatShareCallsWithIt) {
  Timeline timeline = two_device_timeline({
      collective_record(1, 0, 0, 0, 40),
      collective_record(1, 2, 0, 30, 40),
      collective_record(2, 1, 0, 0, 60),
      collective_record(2, 2, 0, 50, 60),
  });
  timeline.devices.push_back({"/job:localhost/replica:0/task:0/device:CPU:2", 0});
  const auto waits = waits_of(timeline, {0});
  ASSERT_EQ(waits.size(), 3u);
  EXPECT_EQ(waits[2].caused, (30 + 50) / 2);
  EXPECT_EQ(waits[0].caused, 0);
}

}  // namespace
}  // namespace tandem
