// Programs that wait until the others have ended, as parameter servers do, on every engine.
#include <mutex>
#include <stdexcept>

#include "engine/mailbox.h"
#include "engine/shared_tensor.h"
#include "tests/conformance/engine_conformance.h"

namespace tandem {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

class EveryEngineEnds : public EveryEngine {};
INSTANTIATE_TEST_SUITE_P(Worlds, EveryEngineEnds, testing::ValuesIn(built_worlds()), name_of_world);
class EveryEngineEndsWhatOthersUse : public ReachingOthers<EveryEngine> {};
INSTANTIATE_TEST_SUITE_P(Worlds, EveryEngineEndsWhatOthersUse, testing::ValuesIn(built_worlds()), name_of_world);

// Workers 0 and 1 change memory of worker 2, which waits from the beginning, in turns that each take a message.
TEST_P(EveryEngineEndsWhatOthersUse, AWorkerWaitsForAllThatOthersDoOnItsDevices) {
  static constexpr int kTurns = 20;
  run(3, 1, [](Worker& worker) {
    Device& kept_on = worker.device({.job = "worker", .task = 2, .type = DeviceType::cpu, .index = 0});
    const auto filled = [&](double value) {
      Tensor made = kept_on.allocate(DType::f32, {4});
      kept_on.compute_stream().launch(op::fill(made, value));
      return made;
    };
    const std::shared_ptr<SharedTensor> total = worker.shared().tensor("total", [&] { return filled(0); });
    if (worker.index() == 2) {
      worker.await_end_of_job();
      EXPECT_THAT(get(worker, total->tensor()), Each(2.0F * kTurns));
      return;
    }
    const auto mine = worker.shared().mailbox(worker.index(), "turn"),
               other = worker.shared().mailbox(1 - worker.index(), "turn");
    for (int turn = 0; turn < kTurns; ++turn) {
      if (worker.index() == 1) mine->receive("its turn");
      {
        const std::lock_guard<SharedTensor> lock(*total);
        kept_on.compute_stream().launch(op::scale_add(total->tensor(), filled(1), 1, 1));
        total->note_change();
      }
      other->send({.text = "x"});
      if (worker.index() == 0) mine->receive("its turn");
    }
  });
}

TEST_P(EveryEngineEnds, WorkersThatAllWaitGoOn) {
  run(3, 1, [](Worker& worker) {
    worker.await_end_of_job();
    worker.await_end_of_job();
  });
}

// Its own devices are still there, and its tasks still wait for each other.
TEST_P(EveryEngineEnds, AWorkerGoesOnAfterTheOthers) {
  run(2, 2, [](Worker& worker) {
    if (worker.index() == 1) return;
    worker.await_end_of_job();
    EXPECT_THAT(get(worker, put(worker, *worker.devices()[1], {1, 1})), Each(1.0F));
    const auto own = worker.shared().mailbox(worker.index(), "own");
    worker.tasks().run_concurrently(2, [&](int task) {
      if (task == 0) own->receive("what the other task sends");
      if (task == 1) own->send({.text = "x"});
    });
  });
}

TEST_P(EveryEngineEnds, AFailureEndsTheWait) {
  bool has_returned = false;
  EXPECT_THAT(([&] {
                run(2, 1, [&](Worker& worker) {
                  if (worker.index() == 0) throw std::logic_error("worker 0 fails");
                  worker.await_end_of_job();
                  has_returned = true;
                });
              }),
              testing::Throws<std::exception>(testing::Property(&std::exception::what, HasSubstr("worker 0 fails"))));
  EXPECT_FALSE(has_returned);
}

TEST_P(EveryEngineEnds, AWorkerThatWaitsForEverIsADeadlock) {
  EXPECT_THAT(([&] {
                run(2, 1, [](Worker& worker) {
                  if (worker.index() == 1) return worker.await_end_of_job();
                  worker.shared().mailbox(0, "nothing")->receive("a letter that nobody sends");
                });
              }),
              testing::ThrowsMessage<DeadlockError>(
                  AllOf(HasSubstr("worker 0 waits for a letter that nobody sends"),
                        HasSubstr("worker 1 waits for the other programs of the job to end"))));
}

TEST_P(EveryEngineEnds, SoIsOneThatWaitsForEverAfterTheOthers) {
  EXPECT_THAT(([&] {
                run(2, 1, [](Worker& worker) {
                  if (worker.index() == 0) return;
                  worker.await_end_of_job();
                  worker.shared().mailbox(1, "nothing")->receive("a letter that nobody sends");
                });
              }),
              testing::ThrowsMessage<DeadlockError>(HasSubstr("worker 1 waits for a letter that nobody sends")));
}

}  // namespace
}  // namespace tandem
