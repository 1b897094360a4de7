// Time limits of collectives on the cpu engine: what they have to do with its deadlock watch, and that a missed one
// costs its time once. What every engine has in common is in the conformance suite.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "engine/cpu/cpu_engine.h"
#include "tests/engine/run_on_cpu.h"

namespace tandem {
namespace {

using testing::HasSubstr;

// `count` all_reduces that worker 1 does not join.
void issue_alone(Worker& worker, double timeout_s, int count = 1) {
  const Tensor tensor = worker.cpu().allocate(DType::f32, {10});
  Communicator& communicator = worker.communicator(all_devices(2, 1));
  communicator.set_timeout(timeout_s);
  for (int i = 0; i < count; ++i)
    communicator.all_reduce({&tensor, 1}, Reduction::sum, streams_of(worker.devices(), 0));
}

// Worker 1 sleeps where the engine does not see it, so that the watch has its own timeout running, too.
void expect_deadline(double timeout_s, double deadlock_timeout_s) {
  EngineOptions options = cpu_options(2, 1);
  options.deadlock_timeout_s = deadlock_timeout_s;
  const double seconds = seconds_of([&] {
    EXPECT_THROW(open_cpu_engine(options)->run([&](Worker& worker) {
      if (worker.index() == 1) return std::this_thread::sleep_for(std::chrono::milliseconds(1500));
      const double waited_s = seconds_of([&] {
        issue_alone(worker, timeout_s);
        EXPECT_THROW(worker.cpu().synchronize(), DeadlineExceededError);
      });
      EXPECT_GE(waited_s, timeout_s);
      EXPECT_LT(waited_s, timeout_s + 4);
    }),
                 DeadlineExceededError);
  });
  EXPECT_LT(seconds, 8);
}

TEST(CpuDeadline, ComesBeforeALongerDeadlockTimeout) {
  expect_deadline(0.3, 10);
}

TEST(CpuDeadline, IsWaitedForThroughAShorterDeadlockTimeout) {
  expect_deadline(1, 0.2);
}

TEST(CpuDeadline, PassesOnceForAllThatWasIssued) {
  const double seconds = seconds_of([] {
    EXPECT_THROW(run_on_cpu(2, 1,
                            [](Worker& worker) {
                              if (worker.index() == 0) issue_alone(worker, 0.2, 100);
                            }),
                 DeadlineExceededError);
  });
  EXPECT_LT(seconds, 8);
}

TEST(CpuDeadline, ALateRankFindsTheCallBrokenOff) {
  const auto sleep = [](int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); };
  std::atomic<bool> has_come{false};
  EXPECT_THROW(run_on_cpu(2, 1,
                          [&](Worker& worker) {
                            const bool is_late = worker.index() == 1;
                            if (is_late) sleep(400);
                            issue_alone(worker, is_late ? 100 : 0.1);
                            while (!is_late && !has_come) sleep(5);  // whose error comes first ends the run
                            if (!is_late) return;
                            EXPECT_THROW(worker.cpu().synchronize(), DeadlineExceededError);
                            has_come = true;
                          }),
               DeadlineExceededError);
}

// Nobody may leave a call that is under way, so the error comes after it; one device is always under way.
TEST(CpuDeadline, OfACallThatAllHaveJoinedFailsAfterIt) {
  EXPECT_THAT(([] {
                run_on_cpu(1, 1, [](Worker& worker) {
                  const Tensor tensor = worker.cpu().allocate(DType::f32, {1 << 20});
                  Communicator& communicator = worker.communicator(all_devices(1, 1));
                  communicator.set_timeout(1e-9);
                  communicator.all_reduce({&tensor, 1}, Reduction::sum, streams_of(worker.devices(), 0));
                });
              }),
              testing::ThrowsMessage<DeadlineExceededError>(
                  HasSubstr("all_reduce #0 (1 of 1 devices arrived) is not complete 1e-09 s after")));
}

}  // namespace
}  // namespace tandem
