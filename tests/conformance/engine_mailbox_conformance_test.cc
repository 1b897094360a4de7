// Messages between workers, on every engine: in one process or in several.
#include "engine/mailbox.h"

#include "tests/conformance/engine_conformance.h"

namespace tandem {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

class EveryEngineSends : public EveryEngine {};
INSTANTIATE_TEST_SUITE_P(Worlds, EveryEngineSends, testing::ValuesIn(built_worlds()), name_of_world);
class EveryEngineSendsTensors : public ReachingOthers<EveryEngine> {};
INSTANTIATE_TEST_SUITE_P(Worlds, EveryEngineSendsTensors, testing::ValuesIn(built_worlds()), name_of_world);

TEST_P(EveryEngineSends, MessagesOfATaskArriveInOrder) {
  constexpr int kMessages = 100;
  run(3, 1, [](Worker& worker) {
    if (worker.index() != 0) {
      const auto box = worker.shared().mailbox(0, "from " + std::to_string(worker.index()));
      for (int i = 0; i < kMessages; ++i) box->send({.text = std::to_string(i) + std::string(1, '\0')});
      return;
    }
    for (const int sender : {2, 1}) {
      const auto box = worker.shared().mailbox(0, "from " + std::to_string(sender));
      for (int i = 0; i < kMessages; ++i) {
        EXPECT_EQ(box->receive("a message").text, std::to_string(i) + std::string(1, '\0'));
      }
    }
  });
}

TEST_P(EveryEngineSends, AWorkerSendsToItself) {
  run(2, 1, [](Worker& worker) {
    const auto box = worker.shared().mailbox(worker.index(), "own");
    box->send({.text = "first"});
    worker.shared().mailbox(worker.index(), "own")->send({.text = "second"});
    EXPECT_EQ(box->receive("a message").text, "first");
    EXPECT_EQ(box->receive("a message").text, "second");
  });
}

TEST_P(EveryEngineSends, TwoTasksShareTheMessagesOfOneMailbox) {
  constexpr int kMessages = 20;
  run(2, 1, [](Worker& worker) {
    const auto box = worker.shared().mailbox(0, "work");
    if (worker.index() == 1) {
      for (int i = 0; i < kMessages; ++i) box->send({.text = "x"});
      return;
    }
    std::vector<int> received(2);
    worker.tasks().run_concurrently(2, [&](int task) {
      for (int i = 0; i < kMessages / 2; ++i) {
        received[static_cast<std::size_t>(task)] += static_cast<int>(box->receive("a message").text.size());
      }
    });
    EXPECT_THAT(received, ElementsAre(kMessages / 2, kMessages / 2));
  });
}

// The receiver reads the sender's memory, which is there as long as the receiver has the tensor.
TEST_P(EveryEngineSendsTensors, ThatStayWhereTheyAre) {
  run(2, 1, [](Worker& worker) {
    const auto there = worker.shared().mailbox(1, "tensors"), back = worker.shared().mailbox(0, "done");
    if (worker.index() == 0) {
      for (int round = 0; round < 3; ++round) {
        const auto value = static_cast<float>(round);
        Tensor whole = put(worker, *worker.devices()[0], {value, value + 1, value + 2});
        worker.devices()[0]->compute_stream().synchronize();
        there->send({.text = "", .tensors = {whole.flat_slice(1, 2), whole}});
        whole = {};
        EXPECT_EQ(back->receive("the other worker").text, "read");
      }
      return;
    }
    for (int round = 0; round < 3; ++round) {
      const WorkerMessage message = there->receive("tensors");
      ASSERT_EQ(message.tensors.size(), 2U);
      const auto value = static_cast<float>(round);
      EXPECT_EQ(message.tensors[0].device().worker(), 0);
      Device& here = *worker.devices()[0];
      const Tensor part = here.allocate(DType::f32, {2}), whole = here.allocate(DType::f32, {3});
      here.compute_stream().copy(part, message.tensors[0]);
      here.compute_stream().copy(whole, message.tensors[1]);
      EXPECT_THAT(get(worker, part), ElementsAre(value + 1, value + 2));
      EXPECT_THAT(get(worker, whole), ElementsAre(value, value + 1, value + 2));
      back->send({.text = "read"});
    }
  });
}

TEST_P(EveryEngineSendsTensors, OfItsOwnWorkerOnly) {
  run(2, 1, [](Worker& worker) {
    if (worker.index() != 0) return;
    DeviceId other = worker.devices()[0]->id();
    other.task = 1;
    const Tensor remote = worker.device(other).allocate(DType::f32, {1});
    const auto box = worker.shared().mailbox(1, "tensors");
    EXPECT_THAT([&] { box->send({.text = "", .tensors = {remote}}); },
                ThrowsMessage<UsageError>(HasSubstr("is on no device of the worker that sends it")));
  });
}

TEST_P(EveryEngineSends, OnlyTheOwnerReceives) {
  run(2, 1, [](Worker& worker) {
    const auto box = worker.shared().mailbox(1 - worker.index(), "of the other");
    EXPECT_THAT([&] { box->receive("a message"); },
                ThrowsMessage<UsageError>(HasSubstr("only worker " + std::to_string(1 - worker.index()))));
    EXPECT_THROW(worker.shared().mailbox(2, "of nobody"), UsageError);
    EXPECT_THROW(worker.shared().mailbox(-1, "of nobody"), UsageError);
  });
}

TEST_P(EveryEngineSends, AMessageThatNobodySendsIsADeadlock) {
  EXPECT_THAT(([&] {
                run(2, 1, [](Worker& worker) {
                  worker.shared().mailbox(worker.index(), "own")->receive("a message that nobody sends");
                });
              }),
              ThrowsMessage<DeadlockError>(AllOf(HasSubstr("worker 0 waits for a message that nobody sends"),
                                                 HasSubstr("worker 1 waits for a message that nobody sends"))));
}

}  // namespace
}  // namespace tandem
