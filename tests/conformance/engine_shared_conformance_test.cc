// SharedState::object on every engine: one object for all, made by a task that may block while others ask.
#include <mutex>
#include <stdexcept>

#include "tests/conformance/engine_conformance.h"

namespace tandem {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class EveryEngineShares : public EveryEngine {
 protected:
  void SetUp() override {
    EveryEngine::SetUp();
    if (workers_here(GetParam(), 2) < 2) GTEST_SKIP() << "workers in several processes share no memory";
  }
};
INSTANTIATE_TEST_SUITE_P(Worlds, EveryEngineShares, testing::ValuesIn(built_worlds()), name_of_world);

// A place where tasks of all workers wait for each other to pass numbered points.
class Points {
 public:
  static std::shared_ptr<Points> of(Worker& worker) {
    return std::static_pointer_cast<Points>(
        worker.shared().object("points", [&] { return std::make_shared<Points>(worker); }));
  }
  explicit Points(Worker& worker) : monitor_(worker.tasks().make_monitor()) {}
  void pass() {
    const std::lock_guard lock(*monitor_);
    ++passed_;
    monitor_->notify_all();
  }
  void wait_for(int points) {
    const std::lock_guard lock(*monitor_);
    while (passed_ < points) monitor_->wait("point " + std::to_string(points));
  }

 private:
  const std::unique_ptr<Monitor> monitor_;
  int passed_ = 0;
};

TEST_P(EveryEngineShares, MakesOneObjectForAllWorkers) {
  int made = 0;
  std::vector<void*> seen(3);
  run(3, 1, [&](Worker& worker) {
    const auto object = worker.shared().object("a", [&] { return std::make_shared<int>(++made); });
    seen[static_cast<std::size_t>(worker.index())] = object.get();
  });
  EXPECT_EQ(made, 1);
  EXPECT_EQ(seen[1], seen[0]);
  EXPECT_EQ(seen[2], seen[0]);
}

TEST_P(EveryEngineShares, OthersGoOnWhileAnObjectIsMade) {
  run(2, 1, [&](Worker& worker) {
    const auto points = Points::of(worker);
    if (worker.index() == 0) {
      worker.shared().object("slow", [&] {
        const Tensor tensor = put(worker, *worker.devices()[0], {1, 2, 3});
        EXPECT_THAT(get(worker, tensor), testing::ElementsAre(1, 2, 3)) << "waits for work of a device";
        points->pass();
        points->wait_for(2);
        return std::make_shared<int>(7);
      });
      return;
    }
    points->wait_for(1);
    EXPECT_EQ(*std::static_pointer_cast<int>(worker.shared().object("quick", [] { return std::make_shared<int>(8); })),
              8);
    points->pass();
    const auto unused = [] { return std::make_shared<int>(9); };
    EXPECT_EQ(*std::static_pointer_cast<int>(worker.shared().object("slow", unused)), 7);
  });
}

TEST_P(EveryEngineShares, ADeadlockWhileAnObjectIsMadeIsReported) {
  EXPECT_THAT(([&] {
                run(2, 1, [&](Worker& worker) {
                  const auto points = Points::of(worker);
                  if (worker.index() == 1) points->wait_for(1);
                  worker.shared().object("stuck", [&] {
                    points->pass();
                    points->wait_for(2);
                    return std::make_shared<int>(1);
                  });
                });
              }),
              testing::ThrowsMessage<DeadlockError>(
                  AllOf(HasSubstr("worker 0 waits for point 2"),
                        HasSubstr("worker 1 waits for the shared object 'stuck', which worker 0 makes"))));
}

TEST_P(EveryEngineShares, TheNextTaskMakesWhatOneFailedToMake) {
  std::vector<int> values(2);
  run(2, 1, [&](Worker& worker) {
    const auto points = Points::of(worker);
    if (worker.index() == 0) {
      EXPECT_THROW(worker.shared().object("a", []() -> std::shared_ptr<void> { throw std::runtime_error("no luck"); }),
                   std::runtime_error);
      points->pass();
      points->wait_for(2);
    } else {
      points->wait_for(1);
    }
    const auto make = [&] { return std::make_shared<int>(worker.index() + 5); };
    values[static_cast<std::size_t>(worker.index())] =
        *std::static_pointer_cast<int>(worker.shared().object("a", make));
    if (worker.index() == 1) points->pass();
  });
  EXPECT_THAT(values, testing::ElementsAre(6, 6));
}

}  // namespace
}  // namespace tandem
