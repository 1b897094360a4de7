// How processes agree on a call: each hears every vote, and all come to the same result.
#include "engine/mpi/messages/agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "engine/task.h"
#include "engine/threads/remote_device.h"
#include "engine/threads/run_control.h"

namespace tandem::mpi {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

constexpr CallId kFirst{.group = 7, .number = 0}, kSecond{.group = 7, .number = 1};

// Three processes with a device each. Messages wait until they are delivered, those between two in order.
class AgreementTest : public testing::Test {
 protected:
  static constexpr int kProcesses = 3;

  AgreementTest() {
    std::vector<std::string> places;
    SpanningGroup group{.hash = 7, .devices = {}, .owners = {}, .processes = {}};
    for (int i = 0; i < kProcesses; ++i) {
      places.push_back("rank " + std::to_string(i));
      devices_.push_back(std::make_unique<threads::RemoteDevice>(DeviceId{.job = "worker", .task = i}, i, i));
      group.devices.push_back(devices_.back()->id());
      group.owners.push_back(i);
      group.processes.push_back(i);
    }
    group_ = std::make_shared<const SpanningGroup>(std::move(group));
    for (int i = 0; i < kProcesses; ++i) {
      processes_.push_back(std::make_unique<Agreement>(
          i, places, [this, i](int to, MessageKind kind, const std::function<void(ByteWriter&)>& add) {
            ByteWriter bytes;
            add(bytes);
            sent_[{i, to}].push_back({kind, bytes.take()});
          }));
    }
  }

  std::shared_ptr<threads::CollectiveCall> call(const CallId& id, std::int64_t count = 4, Name purpose = {}) {
    std::vector<Device*> devices;
    for (const auto& device : devices_) devices.push_back(device.get());
    return std::make_shared<threads::CollectiveCall>(control_, CollectiveSpec{.count = count, .purpose = purpose},
                                                     devices, id.number, std::make_shared<NoExecutor>(), 1);
  }
  std::shared_ptr<const Agreement::Ballot> vote(int process, const CallId& id, std::optional<std::string> values = {},
                                                std::int64_t count = 4, Name purpose = {}) {
    calls_.push_back(call(id, count, purpose));
    of(process).note_opened(id, group_, calls_.back());
    const CallOrder order = values ? CallOrder::none : CallOrder::group;
    return of(process).vote(id, *calls_.back(), order, std::move(values).value_or(""));
  }
  std::shared_ptr<const Agreement::Ballot> vote_in_job(int process, const CallId& id,
                                                       const std::shared_ptr<const SpanningGroup>& group) {
    calls_.push_back(call(id));
    of(process).note_opened(id, group, calls_.back());
    return of(process).vote(id, *calls_.back(), CallOrder::job, "");
  }
  Agreement& of(int process) { return *processes_[static_cast<std::size_t>(process)]; }
  void deliver(int from, int to) {
    for (auto& queue = sent_[{from, to}]; !queue.empty(); queue.pop_front()) {
      ByteReader bytes(queue.front().text);
      of(to).handle(from, queue.front().kind, bytes);
    }
  }
  void deliver_all() {
    for (int round = 0; round < 3; ++round) {
      for (int from = 0; from < kProcesses; ++from) {
        for (int to = 0; to < kProcesses; ++to) deliver(from, to);
      }
    }
  }

  std::shared_ptr<const SpanningGroup> group_;
  std::vector<std::shared_ptr<threads::CollectiveCall>> calls_;

 private:
  class NoExecutor final : public threads::CollectiveExecutor {
    void execute(const threads::CollectiveCall& /*call*/) override {}
    void abort() override {}
  };
  struct Sent {
    MessageKind kind;
    std::string text;
  };

  threads::RunControl control_;
  std::vector<std::unique_ptr<threads::RemoteDevice>> devices_;
  std::vector<std::unique_ptr<Agreement>> processes_;
  std::map<std::pair<int, int>, std::deque<Sent>> sent_;
};

TEST_F(AgreementTest, ACallTakesPlaceWhenAllVotesAreThereAndBringTheirValues) {
  const auto mine = vote(1, kFirst, "b");
  vote(0, kFirst, "a");
  deliver_all();
  EXPECT_FALSE(mine->is_decided());
  vote(2, kFirst, "c");
  deliver_all();
  EXPECT_TRUE(mine->is_decided());
  for (int process = 0; process < kProcesses; ++process) {
    EXPECT_THAT(of(process).take(kFirst).values, ElementsAre("a", "b", "c"));
  }
}

// Process 1 has the votes for the second call before those for the first, process 2 the other way round.
TEST_F(AgreementTest, CallsOfMpiAreExecutedInTheOrderOfTheLeader) {
  std::vector<std::shared_ptr<const Agreement::Ballot>> first, second;
  for (int process = 0; process < kProcesses; ++process) {
    second.push_back(vote(process, kSecond));
    if (process != 2) deliver_all();
    first.push_back(vote(process, kFirst));
  }
  deliver(2, 1);
  deliver(0, 1);
  EXPECT_FALSE(first[1]->is_decided()) << "the leader has not said which is the next";
  deliver_all();
  EXPECT_TRUE(second[1]->is_decided());
  EXPECT_FALSE(first[1]->is_decided()) << "one at a time";
  const int tag = of(1).take(kSecond).tag;
  EXPECT_EQ(of(2).take(kSecond).tag, tag);
  of(1).end_turn(kSecond, CallOrder::group);
  EXPECT_TRUE(first[1]->is_decided());
  EXPECT_NE(of(1).take(kFirst).tag, tag);
}

// Two groups: of processes 0, 1 and 2, and of 1 and 2. Process 1 hears of the second one's call first.
TEST_F(AgreementTest, CallsOfAllGroupsThatGpusExecuteHaveOneOrder) {
  constexpr CallId kOther{.group = 8, .number = 0};
  SpanningGroup pair = *group_;
  pair.hash = 8;
  pair.devices.erase(pair.devices.begin());
  pair.owners = pair.processes = {1, 2};
  const auto other_group = std::make_shared<const SpanningGroup>(std::move(pair));
  std::vector<std::shared_ptr<const Agreement::Ballot>> all(kProcesses), of_pair(kProcesses);
  for (const int process : {1, 2})
    of_pair[static_cast<std::size_t>(process)] = vote_in_job(process, kOther, other_group);
  for (int process = 0; process < kProcesses; ++process) {
    all[static_cast<std::size_t>(process)] = vote_in_job(process, kFirst, group_);
  }
  deliver(1, 2);
  deliver(2, 1);
  EXPECT_TRUE(of_pair[1]->takes_place());
  EXPECT_FALSE(of_pair[1]->is_decided()) << "rank 0 has not said when";
  deliver(2, 0);
  deliver(1, 0);  // the vote for the first call, and then the question for the other's place
  deliver_all();
  const bool is_first = all[1]->is_decided();
  EXPECT_NE(is_first, of_pair[1]->is_decided()) << "one at a time";
  EXPECT_EQ(all[2]->is_decided(), is_first);
  EXPECT_EQ(of_pair[2]->is_decided(), !is_first);
  EXPECT_TRUE(all[0]->is_decided()) << "the only call that process 0 has a part in";
  for (const int process : {1, 2}) {
    const auto index = static_cast<std::size_t>(process);
    of(process).take(is_first ? kFirst : kOther);
    of(process).end_turn(is_first ? kFirst : kOther, CallOrder::job);
    EXPECT_TRUE((is_first ? of_pair : all)[index]->is_decided());
  }
}

TEST_F(AgreementTest, ARefusedCallHasNoPlaceAndTheNextRunBeginsAnew) {
  for (int process = 0; process < kProcesses; ++process) {
    if (process != 2) vote_in_job(process, kFirst, group_);
  }
  calls_.push_back(call(kFirst));
  of(2).note_opened(kFirst, group_, calls_.back());
  of(2).give_up(kFirst, *calls_.back(), std::make_exception_ptr(RunError("no memory")));
  deliver_all();
  for (int process = 0; process < kProcesses; ++process) EXPECT_THROW(of(process).take(kFirst), RunError);
  for (const int run : {0, 1}) {
    for (int process = 0; process < kProcesses; ++process) {
      if (run == 1) of(process).begin_next_run();
    }
    const CallId id = run == 0 ? kSecond : kFirst;
    std::vector<std::shared_ptr<const Agreement::Ballot>> ballots;
    for (int process = 0; process < kProcesses; ++process) ballots.push_back(vote_in_job(process, id, group_));
    deliver_all();
    for (int process = 0; process < kProcesses; ++process) {
      EXPECT_TRUE(ballots[static_cast<std::size_t>(process)]->is_decided()) << "run " << run;
      of(process).take(id);
      of(process).end_turn(id, CallOrder::job);
    }
  }
}

TEST_F(AgreementTest, CallsThatDifferAreRefusedByAllInTheSameWords) {
  vote(1, kFirst, {}, 5);
  vote(0, kFirst, {}, 4);
  vote(2, kFirst, {}, 5);
  deliver_all();
  for (int process = 0; process < kProcesses; ++process) {
    EXPECT_THAT(([&] { of(process).take(kFirst); }),
                ThrowsMessage<RunError>(testing::StartsWith("collective #0: rank ")));
  }
}

// A purpose is sent with the first call that has it, and with a number in those that follow, here the second one.
TEST_F(AgreementTest, ProcessesThatDifferInPurposeAreRefused) {
  for (const CallId& id : {kFirst, kSecond}) {
    const bool is_first = id == kFirst;
    for (int process = 0; process < kProcesses; ++process) {
      vote(process, id, {}, 4, is_first || process < 2 ? "reduce() by SUM" : "read() of variable 'v'");
    }
    deliver_all();
    for (int process = 0; process < kProcesses; ++process) {
      if (is_first) {
        EXPECT_NO_THROW(of(process).take(id));
        continue;
      }
      EXPECT_THAT(
          [&] { of(process).take(id); },
          ThrowsMessage<RunError>(AllOf(HasSubstr("rank 2 calls all_reduce of 4 f32 (sum) for read() of variable "
                                                  "'v'"),
                                        HasSubstr("calls all_reduce of 4 f32 (sum) for reduce() by SUM"))));
    }
  }
}

TEST_F(AgreementTest, WhoHasNotVotedRefusesForAllWhoAsk) {
  const auto first = vote(0, kFirst), second = vote(1, kFirst);
  deliver_all();
  of(0).give_up(kFirst, *calls_[0], std::make_exception_ptr(DeadlineExceededError(calls_[0]->text() + " is late")));
  EXPECT_FALSE(first->is_decided()) << "the vote of process 2 may be on its way";
  deliver_all();
  EXPECT_TRUE(first->is_decided());
  EXPECT_TRUE(second->is_decided());
  vote(2, kFirst);
  for (int process = 0; process < kProcesses; ++process) {
    EXPECT_THAT(([&] { of(process).take(kFirst); }),
                ThrowsMessage<DeadlineExceededError>("all_reduce #0 (2 of 3 devices arrived; missing " +
                                                     group_->devices[2].text() + ") is late"));
  }
}

TEST_F(AgreementTest, OfAVoteAndAQuestionThatCrossTheVoteCounts) {
  std::vector<std::shared_ptr<const Agreement::Ballot>> ballots;
  for (int process = 0; process < kProcesses; ++process) ballots.push_back(vote(process, kFirst, ""));
  of(0).give_up(kFirst, *calls_[0], std::make_exception_ptr(DeadlineExceededError("late")));
  deliver_all();
  for (const auto& ballot : ballots) EXPECT_TRUE(ballot->takes_place());
}

TEST_F(AgreementTest, AQuestionThatComesAfterTheCallHasEndedIsNoRefusal) {
  for (int process = 0; process < kProcesses; ++process) vote(process, kFirst, "");
  of(0).give_up(kFirst, *calls_[0], std::make_exception_ptr(DeadlineExceededError("late")));
  deliver(0, 1);  // with the question after the vote
  deliver(2, 1);
  deliver(1, 2);
  of(1).take(kFirst);
  deliver_all();
  EXPECT_EQ(of(0).take(kFirst).values.size(), 3U);
  EXPECT_EQ(of(2).take(kFirst).values.size(), 3U);
}

TEST_F(AgreementTest, ARunThatWasStoppedRefusesWhatIsNotVotedFor) {
  const auto first = vote(0, kFirst);
  deliver_all();
  of(1).stop();
  deliver_all();
  EXPECT_FALSE(first->is_decided()) << "process 0 has yet to hear that the run was stopped";
  of(0).stop();
  EXPECT_TRUE(first->is_decided());
  EXPECT_THROW(of(0).take(kFirst), RunStopped);
  const auto later = vote(2, kFirst);
  deliver_all();
  of(2).stop();
  EXPECT_TRUE(later->is_decided());
  EXPECT_THROW(of(2).take(kFirst), RunStopped);
}

TEST_F(AgreementTest, WhatAllHaveVotedForTakesPlaceInAStoppedRun) {
  std::vector<std::shared_ptr<const Agreement::Ballot>> ballots;
  for (int process = 0; process < kProcesses; ++process) ballots.push_back(vote(process, kFirst, ""));
  for (int process = 0; process < kProcesses; ++process) of(process).stop();
  deliver_all();
  for (const auto& ballot : ballots) EXPECT_TRUE(ballot->takes_place());
}

}  // namespace
}  // namespace tandem::mpi
