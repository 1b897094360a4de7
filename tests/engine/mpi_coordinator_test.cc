// What rank 0 decides for the processes of a run: when a call begins, and how a run ends.
#include "engine/mpi/coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/threads/collective_call.h"

namespace tandem::mpi {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Two processes with a device each, and what the coordinator has said to them: "0 go 7#0".
class CoordinatorTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kGroup = 7;

  CoordinatorTest()
      : coordinator_({"rank 0 on a", "rank 1 on b"},
                     [this](int to, const std::string& message) { said_.push_back(text_of(to, message)); }) {
    for (const int process : {0, 1}) {
      tell(process, MessageKind::group, [](ByteWriter& bytes) {
        bytes.put(kGroup).put(std::uint64_t{2});
        for (const int task : {0, 1}) bytes.put_text(device(task)).put(task);
      });
    }
  }

  static std::string device(int task) { return DeviceId{"worker", task, DeviceType::cpu, 0}.text(); }
  void tell(int from, MessageKind kind, const std::function<void(ByteWriter&)>& add = {}) {
    ByteWriter bytes;
    bytes.put(kind);
    if (add) add(bytes);
    coordinator_.handle(from, bytes.take());
  }
  void arrive(int from, std::int64_t number, std::int64_t count = 4) {
    tell(from, MessageKind::arrive, [&](ByteWriter& bytes) {
      bytes.put(CallId{kGroup, number}).put(CollectiveKind::all_reduce).put(DType::f32).put(count);
      bytes.put(Reduction::sum).put(0);
    });
  }
  // A process says that it is stuck in a call, having sent and received so many messages.
  void be_stuck(int from, std::int64_t sent, std::int64_t received, std::int64_t number) {
    const CallId id{kGroup, number};
    tell(from, MessageKind::stuck, [&](ByteWriter& bytes) {
      bytes.put(sent).put(received);
      bytes.put_text("worker " + std::to_string(from) + " waits for " + threads::kCallMarkBegin +
                     std::to_string(id.record_sequence()) + threads::kCallMarkEnd);
      bytes.put(std::uint64_t{1});
      put_call(bytes, {.id = id, .kind = CollectiveKind::all_reduce, .arrived = {from}});
    });
  }
  void be_done(int from, const std::optional<JobError>& error = {}) {
    tell(from, MessageKind::done, [&](ByteWriter& bytes) { put_error(bytes, error); });
  }
  std::vector<std::string> take_said() { return std::exchange(said_, {}); }

 private:
  static std::string text_of(int to, const std::string& message) {
    ByteReader bytes(message);
    const std::string receiver = std::to_string(to) + " ";
    switch (bytes.get<MessageKind>()) {
      case MessageKind::go:
        return receiver + "go " + std::to_string(bytes.get<CallId>().number);
      case MessageKind::broken: {
        const std::string number = std::to_string(bytes.get<CallId>().number);
        return receiver + "broken " + number + ": " + get_error(bytes).value().text;
      }
      case MessageKind::stop:
        return receiver + "stop";
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

TEST_F(CoordinatorTest, ACallBeginsWhenAllProcessesHaveArrived) {
  arrive(1, 0);
  EXPECT_THAT(take_said(), IsEmpty());
  arrive(0, 0);
  EXPECT_THAT(take_said(), ElementsAre("0 go 0", "1 go 0"));
  be_done(0);
  EXPECT_THAT(take_said(), IsEmpty());
  be_done(1);
  EXPECT_THAT(take_said(), ElementsAre("0 end", "1 end"));
}

TEST_F(CoordinatorTest, CallsThatDifferAreBrokenOnAll) {
  arrive(0, 0, 4);
  arrive(1, 0, 5);
  const std::string error =
      "collective #0: rank 1 on b calls all_reduce of 5 f32 (sum), rank 0 on a calls all_reduce of 4 f32 (sum); all "
      "workers of a group must make the same calls in the same order";
  EXPECT_THAT(take_said(), ElementsAre("0 broken 0: " + error, "1 broken 0: " + error));
  arrive(1, 0);
  EXPECT_THAT(take_said(), IsEmpty()) << "it stays broken";
}

TEST_F(CoordinatorTest, AMissedDeadlineNamesWhoIsMissing) {
  arrive(0, 0);
  const CallId id{kGroup, 0};
  tell(0, MessageKind::break_off, [&](ByteWriter& bytes) {
    put_call(bytes, {.id = id, .kind = CollectiveKind::all_reduce, .arrived = {0}});
    put_error(bytes, JobError{.kind = JobError::Kind::deadline,
                              .text = threads::kCallMarkBegin + std::to_string(id.record_sequence()) +
                                      threads::kCallMarkEnd + " is late"});
  });
  const std::string error = "all_reduce #0 (1 of 2 devices arrived; missing " + device(1) + ") is late";
  EXPECT_THAT(take_said(), ElementsAre("0 broken 0: " + error, "1 broken 0: " + error));
}

TEST_F(CoordinatorTest, ADeadlockIsFoundWhenNoMessageIsOnItsWay) {
  arrive(0, 0);
  arrive(1, 1);
  be_stuck(0, 2, 0, 0);
  be_stuck(1, 1, 0, 1);
  EXPECT_THAT(take_said(), IsEmpty()) << "one of the messages of rank 1 came after its report";
  be_stuck(1, 2, 0, 1);
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

TEST_F(CoordinatorTest, AProcessThatHasEndedIsNamedInADeadlock) {
  arrive(0, 0);
  be_done(1);
  be_stuck(0, 2, 0, 0);
  be_done(0);
  EXPECT_THAT(take_said(), ElementsAre("0 stop", "1 stop",
                                       HasSubstr("(1 of 2 devices arrived; missing " + device(1) +
                                                 "); rank 1 on b: its programs have ended"),
                                       HasSubstr("1 end: deadlock")));
}

TEST_F(CoordinatorTest, TheFirstFailureIsTheRuns) {
  tell(1, MessageKind::fail, [](ByteWriter& bytes) { put_error(bytes, JobError{.text = "out of luck"}); });
  tell(0, MessageKind::fail, [](ByteWriter& bytes) { put_error(bytes, JobError{.text = "a consequence"}); });
  EXPECT_THAT(take_said(), ElementsAre("0 stop", "1 stop"));
  arrive(0, 0);
  arrive(1, 0);
  EXPECT_THAT(take_said(), IsEmpty()) << "nothing begins in a stopped run";
  be_done(0);
  be_done(1);
  EXPECT_THAT(take_said(), ElementsAre("0 end: rank 1 on b: out of luck", "1 end: rank 1 on b: out of luck"));
}

TEST_F(CoordinatorTest, ARunThatOneHasLeftEndsWithoutIt) {
  tell(1, MessageKind::leave);
  arrive(0, 0);
  be_stuck(0, 2, 0, 0);
  be_done(0);
  EXPECT_THAT(take_said(), ElementsAre("0 stop", HasSubstr("rank 1 on b: its programs have ended")));
}

}  // namespace
}  // namespace tandem::mpi
