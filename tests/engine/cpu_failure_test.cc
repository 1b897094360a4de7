// How a run on the cpu engine ends when something goes wrong: with one exception, soon, and no thread left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "engine/cpu/cpu_engine.h"
#include "tests/engine/run_on_cpu.h"

namespace tandem {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

Op failing_op() {
  return op::host_function("explode", {}, [] { throw std::runtime_error("out of luck"); });
}

constexpr const char* kOpMessage = "op 'explode' on /job:worker/replica:0/task:0/device:CPU:0: out of luck";

TEST(CpuOpError, SurfacesAtTheNextSynchronize) {
  EXPECT_THAT(([] {
                run_on_cpu(1, 1, [](Worker& worker) {
                  Stream& stream = worker.cpu().compute_stream();
                  stream.launch(failing_op());
                  EXPECT_THAT([&] { stream.synchronize(); }, testing::ThrowsMessage<RunError>(kOpMessage));
                  EXPECT_THROW(worker.cpu().synchronize(), RunError) << "it stays";
                });
              }),
              testing::ThrowsMessage<RunError>(kOpMessage));
}

TEST(CpuOpError, SurfacesAtTheEndOfAProgramThatNeverSynchronizes) {
  EXPECT_THAT(([] { run_on_cpu(1, 1, [](Worker& worker) { worker.cpu().compute_stream().launch(failing_op()); }); }),
              testing::ThrowsMessage<RunError>(kOpMessage));
}

TEST(CpuOpError, SurfacesOnAStepAndSkipsWhatFollows) {
  bool has_followed = false;
  EXPECT_THROW(
      run_on_cpu(1, 1,
                 [&](Worker& worker) {
                   worker.begin_step(0);
                   worker.cpu().compute_stream().launch(failing_op());
                   worker.cpu().compute_stream().launch(op::host_function("after", {}, [&] { has_followed = true; }));
                   worker.end_step();
                 }),
      RunError);
  EXPECT_FALSE(has_followed);
}

TEST(CpuOpError, DoesNotLeaveOtherDevicesInACollective) {
  EXPECT_THAT(([] {
                run_on_cpu(2, 1, [](Worker& worker) {
                  const Tensor tensor = worker.cpu().allocate(DType::f32, {10});
                  if (worker.index() == 0) worker.cpu().compute_stream().launch(failing_op());
                  Communicator& communicator = worker.communicator(all_devices(2, 1));
                  communicator.all_reduce({&tensor, 1}, Reduction::sum, streams_of(worker.devices(), 0));
                  worker.cpu().synchronize();
                });
              }),
              testing::ThrowsMessage<RunError>(kOpMessage));
}

TEST(CpuException, OfOneProgramEndsTheOthers) {
  bool has_gone_on = false;
  const double seconds = seconds_of([&] {
    EXPECT_THAT(([&] {
                  run_on_cpu(3, 1, [&](Worker& worker) {
                    if (worker.index() == 1) {
                      std::this_thread::sleep_for(std::chrono::milliseconds(20));
                      throw std::runtime_error("worker 1 gives up");
                    }
                    const auto monitor = worker.tasks().make_monitor();
                    const std::lock_guard lock(*monitor);
                    if (worker.index() == 0) {
                      for (;;) monitor->wait("something that never comes");
                    }
                    const Tensor tensor = worker.cpu().allocate(DType::f32, {10});
                    Communicator& communicator = worker.communicator(all_devices(3, 1));
                    communicator.broadcast({&tensor, 1}, 0, streams_of(worker.devices(), 0));
                    worker.cpu().synchronize();
                    has_gone_on = true;
                  });
                }),
                testing::ThrowsMessage<std::runtime_error>("worker 1 gives up"));
  });
  EXPECT_LT(seconds, 5);
  EXPECT_FALSE(has_gone_on);
}

TEST(CpuException, OfAReplicaIsRethrownAfterAllHaveEnded) {
  run_on_cpu(1, 1, [](Worker& worker) {
    std::atomic<int> ended{0};
    EXPECT_THAT(([&] {
                  worker.tasks().run_concurrently(4, [&](int i) {
                    if (i == 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));
                    ended.fetch_add(1);
                    if (i > 0) throw std::runtime_error("replica " + std::to_string(i));
                  });
                }),
                testing::ThrowsMessage<std::runtime_error>("replica 1"));
    EXPECT_EQ(ended.load(), 4);
    worker.tasks().run_concurrently(2, [](int) {});
  });
}

TEST(CpuException, OfAReplicaIsNotHiddenByTheDeadlockItLeaves) {
  EXPECT_THAT(([] {
                run_on_cpu(1, 1, [](Worker& worker) {
                  const auto monitor = worker.tasks().make_monitor();
                  worker.tasks().run_concurrently(2, [&](int i) {
                    if (i == 1) throw std::runtime_error("replica 1 fails");
                    const std::lock_guard lock(*monitor);
                    for (;;) monitor->wait("replica 1");
                  });
                });
              }),
              testing::ThrowsMessage<std::runtime_error>("replica 1 fails"));
}

TEST(CpuDeadlock, NamesWhoWaitsForWhat) {
  const double seconds = seconds_of([] {
    EXPECT_THAT(([] {
                  run_on_cpu(2, 1, [](Worker& worker) {
                    if (worker.index() == 0) {
                      const auto monitor = worker.tasks().make_monitor();
                      worker.tasks().run_concurrently(2, [&](int i) {
                        if (i == 0) return;
                        const std::lock_guard lock(*monitor);
                        for (;;) monitor->wait("merge_call 2 of replica 0");
                      });
                    }
                    const Tensor tensor = worker.cpu().allocate(DType::f32, {10});
                    Communicator& communicator = worker.communicator(all_devices(2, 1));
                    communicator.all_reduce({&tensor, 1}, Reduction::sum, streams_of(worker.devices(), 1));
                    worker.cpu().synchronize();
                  });
                }),
                testing::ThrowsMessage<DeadlockError>(AllOf(
                    testing::StartsWith("deadlock: "), HasSubstr("worker 0 waits for 1 of its concurrent functions"),
                    HasSubstr("worker 0 replica 1 waits for merge_call 2 of replica 0; "),
                    HasSubstr("worker 1 waits for stream 1 of /job:worker/replica:0/task:1/device:CPU:0; "),
                    HasSubstr("stream 1 of /job:worker/replica:0/task:1/device:CPU:0 waits for all_reduce #0 (1 of 2 "
                              "devices arrived; missing /job:worker/replica:0/task:0/device:CPU:0)"))));
  });
  EXPECT_LT(seconds, 5);
}

TEST(CpuDeadlock, OfCollectivesInDifferentOrdersIsNamed) {
  EXPECT_THAT(([] {
                run_on_cpu(1, 2, [](Worker& worker) {
                  const std::vector<DeviceId> all = all_devices(1, 2);
                  const std::vector<DeviceId> reversed(all.rbegin(), all.rend());
                  Communicator& first = worker.communicator(all);
                  Communicator& second = worker.communicator(reversed);
                  const std::vector<Tensor> tensors{worker.devices()[0]->allocate(DType::f32, {4}),
                                                    worker.devices()[1]->allocate(DType::f32, {4})};
                  Device& a = *worker.devices()[0];
                  Device& b = *worker.devices()[1];
                  // On stream 0 of a the first group comes first, on stream 0 of b the second: each stream waits
                  // in another call. Stream 1 holds what they wait for, behind them.
                  const std::vector<Stream*> streams{&a.stream(0), &b.stream(1)};
                  const std::vector<Stream*> crossed{&b.stream(0), &a.stream(1)};
                  b.stream(1).wait([&] {
                    second.all_reduce(std::vector{tensors[1], tensors[0]}, Reduction::sum, crossed);
                    return b.stream(0).record();
                  }());
                  first.all_reduce(tensors, Reduction::sum, streams);
                  a.stream(1).wait(a.stream(0).record());
                  first.send(tensors[0], 1, a.stream(0));
                  worker.cpu().synchronize();
                });
              }),
              testing::ThrowsMessage<DeadlockError>(HasSubstr("send and receive #2 (1 of 2 devices arrived; missing "
                                                              "/job:worker/replica:0/task:0/device:CPU:1)")));
}

TEST(CpuDeadlock, OfStreamsAloneIsFound) {
  EXPECT_THAT(([] {
                run_on_cpu(2, 1, [](Worker& worker) {
                  if (worker.index() == 1) return;
                  const Tensor tensor = worker.cpu().allocate(DType::f32, {10});
                  worker.communicator(all_devices(2, 1)).send(tensor, 1, worker.cpu().compute_stream());
                });
              }),
              testing::ThrowsMessage<DeadlockError>(HasSubstr("send and receive #0 (1 of 2 devices arrived")));
}

TEST(CpuDeadlock, OfMonitorsInACircleIsFound) {
  EXPECT_THAT(
      ([] {
        run_on_cpu(1, 1, [](Worker& worker) {
          const auto first = worker.tasks().make_monitor();
          const auto second = worker.tasks().make_monitor();
          const auto meeting = worker.tasks().make_monitor();
          int arrived = 0;
          worker.tasks().run_concurrently(2, [&](int i) {
            const std::lock_guard own(i == 0 ? *first : *second);
            {
              const std::lock_guard lock(*meeting);
              ++arrived;
              meeting->notify_all();
              while (arrived < 2) meeting->wait("the other");
            }
            const std::lock_guard others(i == 0 ? *second : *first);
          });
        });
      }),
      testing::ThrowsMessage<DeadlockError>(AllOf(HasSubstr("worker 0 replica 0 waits for the lock of a monitor"),
                                                  HasSubstr("worker 0 replica 1 waits for the lock of a monitor"))));
}

TEST(CpuDeadlock, EndsTheRunEvenWhenAProgramHidesIt) {
  EXPECT_THROW(run_on_cpu(1, 1,
                          [](Worker& worker) {
                            const auto monitor = worker.tasks().make_monitor();
                            const std::lock_guard lock(*monitor);
                            EXPECT_THROW(monitor->wait("nobody"), DeadlockError);
                          }),
               DeadlockError);
}

TEST(CpuDeadlock, IsNotSeenInLongWork) {
  run_on_cpu(2, 1, [](Worker& worker) {
    const Tensor tensor = worker.cpu().allocate(DType::f32, {10});
    if (worker.index() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(400));  // the program itself
    worker.cpu().compute_stream().launch(
        op::host_function("long", {}, [] { std::this_thread::sleep_for(std::chrono::milliseconds(400)); }));
    Communicator& communicator = worker.communicator(all_devices(2, 1));
    communicator.all_reduce({&tensor, 1}, Reduction::sum, streams_of(worker.devices(), 0));
    worker.cpu().synchronize();
  });
}

TEST(CpuDeadlock, GivesUpOnATaskThatSleepsElsewhere) {
  EngineOptions options = cpu_options(2, 1);
  options.deadlock_timeout_s = 0.3;
  EXPECT_THAT(([&] {
                open_cpu_engine(options)->run([](Worker& worker) {
                  if (worker.index() == 1) {
                    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
                    return;
                  }
                  const auto monitor = worker.tasks().make_monitor();
                  const std::lock_guard lock(*monitor);
                  for (;;) monitor->wait("worker 1");
                });
              }),
              testing::ThrowsMessage<DeadlockError>("no progress for 0.3 s: worker 0 waits for worker 1; another task "
                                                    "sleeps outside the engine"));
}

TEST(CpuCollectiveMismatch, NamesBothSides) {
  const auto run = [](const std::function<void(Worker&, Communicator&)>& call) {
    run_on_cpu(2, 1, [&](Worker& worker) {
      call(worker, worker.communicator(all_devices(2, 1)));
      worker.cpu().synchronize();
    });
  };
  EXPECT_THAT(([&] {
                run([](Worker& worker, Communicator& communicator) {
                  const Tensor tensor = worker.cpu().allocate(DType::f32, {worker.index() + 10});
                  communicator.all_reduce({&tensor, 1}, Reduction::sum, streams_of(worker.devices(), 0));
                });
              }),
              testing::ThrowsMessage<RunError>(AllOf(
                  HasSubstr("collective #0: /job:worker/replica:0/task:"), HasSubstr("all_reduce of 10 f32 (sum)"),
                  HasSubstr("all_reduce of 11 f32 (sum)"), Not(HasSubstr("deadlock")))));
  EXPECT_THAT(([&] {
                run([](Worker& worker, Communicator& communicator) {
                  const Tensor tensor = worker.cpu().allocate(DType::f32, {10});
                  if (worker.index() == 0) {
                    communicator.reduce({&tensor, 1}, Reduction::maximum, 1, streams_of(worker.devices(), 0));
                  } else {
                    communicator.broadcast({&tensor, 1}, 1, streams_of(worker.devices(), 0));
                  }
                });
              }),
              testing::ThrowsMessage<RunError>(AllOf(HasSubstr("reduce of 10 f32 (maximum) to rank 1"),
                                                     HasSubstr("broadcast of 10 f32 from rank 1"))));
}

}  // namespace
}  // namespace tandem
