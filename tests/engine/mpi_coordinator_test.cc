// What rank 0 decides for the processes of a run: how it ends, and what a deadlock is.
#include "engine/mpi/messages/coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "engine/threads/collective_call.h"

namespace tandem::mpi {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Two processes with a device each, and what the coordinator has said to them: "0 stop".
class CoordinatorTest : public testing::Test {
 protected:
  CoordinatorTest()
      : coordinator_({"rank 0 on a", "rank 1 on b"},
                     [this](int to, const std::string& message) { said_.push_back(text_of(to, message)); }) {}

  static std::string device(int task) { return DeviceId{"worker", task, DeviceType::cpu, 0}.text(); }
  void tell(int from, MessageKind kind, const std::function<void(ByteWriter&)>& add = {}) {
    ByteWriter bytes;
    bytes.put(kind);
    if (add) add(bytes);
    coordinator_.handle(from, bytes.take());
  }
  // A process says that it waits in a call, having sent the other so many messages, and received so many from it.
  void wait(int from, std::int64_t sent, std::int64_t received, std::int64_t number) {
    const CallId id{.group = 7, .number = number};
    Stillness still = stillness(from, sent, received);
    still.waits = "worker " + std::to_string(from) + " waits for " + threads::kCallMarkBegin +
                  std::to_string(id.record_sequence()) + threads::kCallMarkEnd;
    still.open.push_back({.id = id, .devices = {device(0), device(1)}, .arrived = {from}});
    tell(from, MessageKind::still, [&](ByteWriter& bytes) { put_stillness(bytes, still); });
  }
  void rest(int from, std::int64_t sent, std::int64_t received) {
    tell(from, MessageKind::still, [&](ByteWriter& bytes) { put_stillness(bytes, stillness(from, sent, received)); });
  }
  void be_done(int from, const std::optional<JobError>& error = {}) {
    tell(from, MessageKind::done, [&](ByteWriter& bytes) { put_error(bytes, error); });
  }
  void lose(int rank) { coordinator_.lose(rank); }
  // A process that waits for nothing that is on its way says so; it knows of so many losses.
  void wait_after(int losses) {
    Stillness still = stillness(0, 1, 0);
    still.waits = "worker 0 waits for the lock";
    still.losses = losses;
    tell(0, MessageKind::still, [&](ByteWriter& bytes) { put_stillness(bytes, still); });
  }
  std::vector<std::string> take_said() { return std::exchange(said_, {}); }

 private:
  static Stillness stillness(int from, std::int64_t sent, std::int64_t received) {
    Stillness still{.is_still = true, .sent = {0, 0}, .received = {0, 0}};
    const auto other = static_cast<std::size_t>(1 - from);
    still.sent[other] = sent;
    still.received[other] = received;
    return still;
  }
  static std::string text_of(int to, const std::string& message) {
    ByteReader bytes(message);
    const std::string receiver = std::to_string(to) + " ";
    switch (bytes.get<MessageKind>()) {
      case MessageKind::stop:
        return receiver + "stop";
      case MessageKind::finish:
        return receiver + "finish";
      case MessageKind::end: {
        const std::optional<JobError> error = get_error(bytes);
        return receiver + "end" + (error ? ": " + error->text : "");
      }
      default:
        return receiver + "?";
    }
  }

  std::vector<std::string> said_;
  Coordinator coordinator_;
};

TEST_F(CoordinatorTest, DevicesAreThereUntilTheProgramsOfAllHaveEnded) {
  tell(1, MessageKind::idle);
  EXPECT_THAT(take_said(), IsEmpty());
  tell(0, MessageKind::idle);
  EXPECT_THAT(take_said(), ElementsAre("0 finish", "1 finish"));
  be_done(0);
  EXPECT_THAT(take_said(), IsEmpty());
  be_done(1);
  EXPECT_THAT(take_said(), ElementsAre("0 end", "1 end"));
}

TEST_F(CoordinatorTest, ADeadlockIsFoundWhenNoMessageIsOnItsWay) {
  wait(0, 1, 0, 0);
  wait(1, 1, 1, 1);
  EXPECT_THAT(take_said(), IsEmpty()) << "rank 0 has not received what rank 1 has sent";
  wait(0, 1, 1, 0);
  EXPECT_THAT(take_said(), ElementsAre("0 stop", "1 stop"));
  be_done(0);
  be_done(1);
  EXPECT_THAT(
      take_said(),
      ElementsAre("0 end: deadlock: rank 0 on a: worker 0 waits for all_reduce #0 (1 of 2 devices arrived; "
                  "missing " +
                      device(1) + "); rank 1 on b: worker 1 waits for all_reduce #1 (1 of 2 devices arrived; missing " +
                      device(0) + ")",
                  HasSubstr("1 end: deadlock")));
}

TEST_F(CoordinatorTest, AProcessWhoseProgramsHaveYetToBeginIsNoPartOfADeadlock) {
  wait(0, 0, 0, 0);
  rest(1, 0, 0);
  EXPECT_THAT(take_said(), IsEmpty());
  tell(1, MessageKind::idle);
  rest(1, 0, 0);
  EXPECT_THAT(take_said(), ElementsAre("0 stop", "1 stop"));
}

TEST_F(CoordinatorTest, NobodyWaitsForALostProcess) {
  tell(0, MessageKind::idle);
  lose(1);
  EXPECT_THAT(take_said(), ElementsAre("0 finish"));
  be_done(0);
  EXPECT_THAT(take_said(), ElementsAre("0 end"));
  tell(0, MessageKind::idle);
  EXPECT_THAT(take_said(), ElementsAre("0 finish")) << "nor in the next run";
}

TEST_F(CoordinatorTest, AProcessThatWaitsMayGoOnOnceItKnowsOfALoss) {
  lose(1);
  wait_after(0);
  EXPECT_THAT(take_said(), IsEmpty());
  wait_after(1);
  EXPECT_THAT(take_said(), ElementsAre("0 stop"));
}

TEST_F(CoordinatorTest, AProcessWhoseProgramsHaveEndedIsNamedInADeadlock) {
  tell(1, MessageKind::idle);
  rest(1, 0, 1);
  wait(0, 1, 0, 0);
  be_done(0);
  be_done(1);
  EXPECT_THAT(take_said(), ElementsAre("0 stop", "1 stop",
                                       HasSubstr("(1 of 2 devices arrived; missing " + device(1) +
                                                 "); rank 1 on b: its programs have ended"),
                                       HasSubstr("1 end: deadlock")));
}

TEST_F(CoordinatorTest, TheFirstFailureIsTheRuns) {
  tell(1, MessageKind::fail, [](ByteWriter& bytes) { put_error(bytes, JobError{.text = "out of luck"}); });
  tell(0, MessageKind::fail, [](ByteWriter& bytes) { put_error(bytes, JobError{.text = "a consequence"}); });
  EXPECT_THAT(take_said(), ElementsAre("0 stop", "1 stop"));
  be_done(0);
  be_done(1);
  EXPECT_THAT(take_said(), ElementsAre("0 end: rank 1 on b: out of luck", "1 end: rank 1 on b: out of luck"));
}

TEST_F(CoordinatorTest, ARunThatOneHasLeftEndsWithoutIt) {
  tell(1, MessageKind::leave);
  wait(0, 1, 0, 0);
  be_done(0);
  EXPECT_THAT(take_said(), ElementsAre("0 stop", HasSubstr("rank 1 on b: its programs have ended")));
}

}  // namespace
}  // namespace tandem::mpi
