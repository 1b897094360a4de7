// Runs as a whole: tasks, failures, deadlocks, repetition, options and notes.
#include <mutex>

#include "tests/engine/sim_support.h"

namespace tandem {
namespace {

Program all_reduce_of(int workers) {
  return [workers](Worker& worker) {
    Device& gpu = *worker.devices()[0];
    const std::vector<Tensor> buffers = {gpu.allocate(DType::f32, {1'000'000})};
    const std::vector<Stream*> streams = {&gpu.compute_stream()};
    for (int step = 0; step < 3; ++step) {
      worker.begin_step(step);
      gpu.compute_stream().launch(cost_only(1e9 * (1 + worker.index() % 3)));
      worker.communicator(gpus_of(workers)).all_reduce(buffers, Reduction::sum, streams);
      worker.end_step();
    }
  };
}

template <typename Run>
std::string message_of(const Run& run) {
  try {
    run();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(SimRun, EqualRunsLeaveEqualTimelinesInOneProcess) {
  const auto run = [](int workers) {
    return text_of(simulate(gpu_workers(make_star({.workers = workers}), workers), all_reduce_of(workers)));
  };
  const std::string first = run(5);
  run(3);  // something else in between
  EXPECT_EQ(run(5), first);
  EXPECT_NE(run(4), first);
}

TEST(SimRun, OneEngineRunsManyTimes) {
  const auto engine = open_sim_engine(gpu_workers(make_star({.workers = 3}), 3));
  const std::string first = text_of(engine->run(all_reduce_of(3)));
  for (int i = 0; i < 50; ++i) ASSERT_EQ(text_of(engine->run(all_reduce_of(3))), first);
}

TEST(SimRun, StepsAreRecordedOnNoDevice) {
  const Timeline timeline = simulate(gpu_workers(make_star(), 2), all_reduce_of(2));
  const auto steps = records_of(timeline, RecordKind::step);
  ASSERT_EQ(steps.size(), 6u);
  EXPECT_EQ(steps[0].device, kNoDevice);
  EXPECT_EQ(steps[0].step, 0);
  EXPECT_EQ(steps[5].step, 2);
  for (const Record& op : records_of(timeline, RecordKind::op)) {
    EXPECT_GE(op.step, 0);
    EXPECT_GE(op.start_ns, steps[static_cast<std::size_t>(2 * op.step)].start_ns);
  }
}

TEST(SimRun, ReplicasRunAsNamedTasksAndShareMonitors) {
  std::vector<std::string> names;
  simulate(gpu_workers(make_star(), 1), [&](Worker& worker) {
    const auto monitor = worker.tasks().make_monitor();
    int arrived = 0;
    worker.tasks().run_concurrently(3, [&](int) {
      EXPECT_EQ(Task::current().worker(), &worker);
      const std::lock_guard lock(*monitor);
      names.push_back(Task::current().name());
      ++arrived;
      monitor->notify_all();
      while (arrived < 3) monitor->wait("the others");
    });
    EXPECT_EQ(Task::current().name(), "worker 0");
  });
  EXPECT_THAT(names, testing::ElementsAre("worker 0 replica 0", "worker 0 replica 1", "worker 0 replica 2"));
  EXPECT_EQ(Task::current().worker(), nullptr);
}

TEST(SimRun, TheExceptionOfTheLowestReplicaReachesTheCallerAfterAllHaveEnded) {
  int ended = 0;
  simulate(gpu_workers(make_star(), 1), [&](Worker& worker) {
    EXPECT_EQ(message_of([&] {
                worker.tasks().run_concurrently(4, [&](int i) {
                  worker.devices()[0]->compute_stream().launch(cost_only(1e9));
                  worker.devices()[0]->synchronize();
                  ++ended;
                  if (i > 0) throw Error("replica " + std::to_string(i));
                });
              }),
              "replica 1");
    worker.now();  // the run goes on
  });
  EXPECT_EQ(ended, 4);
}

TEST(SimRun, AProgramsExceptionStopsTheOtherWorkers) {
  bool unwound = false;
  struct Flag {
    bool& set;
    ~Flag() { set = true; }
  };
  EXPECT_EQ(message_of([&] {
              simulate(gpu_workers(make_star(), 2), [&](Worker& worker) {
                worker.devices()[0]->compute_stream().launch(cost_only(1e12));
                if (worker.index() == 1) throw Error("worker 1 gives up");
                const Flag flag{unwound};
                worker.devices()[0]->synchronize();
                ADD_FAILURE() << "worker 0 was not stopped";
              });
            }),
            "worker 1 gives up");
  EXPECT_TRUE(unwound);
}

TEST(SimRun, AReplicasExceptionIsNotHiddenByThoseWhoWaitForIt) {
  EXPECT_EQ(message_of([] {
              simulate(gpu_workers(make_star(), 1), [](Worker& worker) {
                const auto monitor = worker.tasks().make_monitor();
                worker.tasks().run_concurrently(2, [&](int i) {
                  if (i == 1) throw Error("replica 1 is broken");
                  const std::lock_guard lock(*monitor);
                  while (true) monitor->wait("replica 1");
                });
              });
            }),
            "replica 1 is broken");
}

TEST(SimRun, ADeadlockNamesWhoWaitsForWhat) {
  const auto run = [] {
    simulate(gpu_workers(make_star({.workers = 3}), 3), [](Worker& worker) {
      Device& gpu = *worker.devices()[0];
      const std::vector<Tensor> buffers = {gpu.allocate(DType::f32, {4})};
      const std::vector<Stream*> streams = {&gpu.compute_stream()};
      if (worker.index() == 2) return;
      worker.communicator(gpus_of(3)).all_reduce(buffers, Reduction::sum, streams);
      if (worker.index() == 1) return;
      worker.tasks().run_concurrently(2, [&](int i) {
        if (i == 1) gpu.synchronize();
      });
    });
  };
  EXPECT_THROW(run(), DeadlockError);
  const std::string message = message_of(run);
  EXPECT_THAT(message, testing::HasSubstr("worker 0 replica 1 waits for stream 0 of "
                                          "/job:worker/replica:0/task:0/device:GPU:0, which is at all_reduce #0 (2 of "
                                          "3 devices arrived; missing /job:worker/replica:0/task:2/device:GPU:0)"));
  EXPECT_THAT(message, testing::HasSubstr("worker 0 waits for 1 of its replicas"));
}

TEST(SimRun, AnUnfinishedCollectiveAtTheEndIsADeadlock) {
  const std::string message = message_of([] {
    simulate(gpu_workers(make_star(), 2), [](Worker& worker) {
      Device& gpu = *worker.devices()[0];
      if (worker.index() == 0) {
        worker.communicator(gpus_of(2)).send(gpu.allocate(DType::f32, {4}), 1, gpu.compute_stream());
      }
    });
  });
  EXPECT_THAT(message, testing::HasSubstr("send and receive #0 (1 of 2 devices arrived; missing "
                                          "/job:worker/replica:0/task:1/device:GPU:0)"));
}

TEST(SimRun, WaitingTasksLearnOfTheDeadlock) {
  bool learned = false;
  EXPECT_THROW(simulate(gpu_workers(make_star(), 1),
                        [&](Worker& worker) {
                          const auto monitor = worker.tasks().make_monitor();
                          const std::lock_guard lock(*monitor);
                          try {
                            monitor->wait("nothing at all");
                          } catch (const DeadlockError& error) {
                            learned = true;
                            EXPECT_THAT(error.what(), testing::HasSubstr("worker 0 waits for nothing at all"));
                            throw;
                          }
                        }),
               DeadlockError);
  EXPECT_TRUE(learned);
  simulate(gpu_workers(make_star(), 2), all_reduce_of(2));  // the next simulation is not affected
}

TEST(SimRun, WorkersThatCallDifferentCollectivesAreBothNamed) {
  const std::string message = message_of([] {
    simulate(gpu_workers(make_star(), 2), [](Worker& worker) {
      Device& gpu = *worker.devices()[0];
      const std::vector<Tensor> buffers = {gpu.allocate(DType::f32, {worker.index() == 0 ? 250 : 500})};
      const std::vector<Stream*> streams = {&gpu.compute_stream()};
      Communicator& communicator = worker.communicator(gpus_of(2));
      if (worker.index() == 0) return communicator.all_reduce(buffers, Reduction::sum, streams);
      communicator.broadcast(buffers, 0, streams);
    });
  });
  EXPECT_EQ(message,
            "collective #0: /job:worker/replica:0/task:1/device:GPU:0 calls broadcast of 500 f32 from rank 0, "
            "/job:worker/replica:0/task:0/device:GPU:0 calls all_reduce of 250 f32 (sum); all workers of a group must "
            "make the same calls in the same order");
}

TEST(SimRun, OptionsItCannotServeAreRefusedWithTheReason) {
  const auto open = [](EngineOptions options) { return message_of([&] { open_sim_engine(std::move(options)); }); };
  EXPECT_EQ(open(gpu_workers(make_star(), 3)),
            "/job:worker/task:2 asks for worker 2 of topology 'star', which has 2 (0 to 1)");
  EXPECT_EQ(open(gpu_workers(make_cpu(device_model("cpu", 1, 0)), 1)),
            "/job:worker/task:0 needs a GPU, and worker 0 of topology 'cpu' has none");
}

TEST(SimRun, ASendAndAReceiveThatDifferAreBothNamed) {
  const std::string message = message_of([] {
    simulate(gpu_workers(make_star(), 2), [](Worker& worker) {
      Device& gpu = *worker.devices()[0];
      Communicator& communicator = worker.communicator(gpus_of(2));
      if (worker.index() == 0) return communicator.send(gpu.allocate(DType::f32, {4}), 1, gpu.compute_stream());
      communicator.receive(gpu.allocate(DType::f32, {5}), 0, gpu.compute_stream());
    });
  });
  EXPECT_THAT(message, testing::HasSubstr("/job:worker/replica:0/task:1/device:GPU:0 calls send and receive of 5 f32, "
                                          "/job:worker/replica:0/task:0/device:GPU:0 calls send and receive of 4 f32"));
}

TEST(SimRun, ASimulationInsideAnotherIsTheCallersMistake) {
  simulate(gpu_workers(make_star(), 1), [](Worker& worker) {
    EXPECT_THROW(simulate(gpu_workers(make_star(), 1), [](Worker&) {}), UsageError);
    worker.now();  // the outer one goes on
  });
}

TEST(SimRun, AnUnknownDeviceIsRefusedWithTheKnownOnes) {
  const std::string message =
      message_of([] { simulate(gpu_workers(make_star(), 1), [](Worker& worker) { worker.device(gpu_of(4)); }); });
  EXPECT_EQ(message,
            "no device /job:worker/replica:0/task:4/device:GPU:0 (there are: "
            "/job:worker/replica:0/task:0/device:GPU:0, /job:worker/replica:0/task:0/device:CPU:0)");
}

TEST(SimRun, SettingsSayWhatDecidedTheTimes) {
  const Timeline timeline = simulate(gpu_workers(make_star(), 1), [](Worker&) {});
  EXPECT_EQ(timeline.engine, "sim");
  EXPECT_EQ(timeline.settings.at("network_model"), "CM02");
  EXPECT_EQ(timeline.settings.at("topology"), "star");
  EXPECT_EQ(timeline.settings.at("values"), "none");
  EXPECT_THAT(timeline.settings.at("simgrid"), testing::StartsWith("3."));
  EXPECT_EQ(timeline.devices.size(), 2u);
}

TEST(SimRun, AssumedFiguresInUseAreNotedOnce) {
  StarOptions star;
  star.gpu.op_overhead_s = {.value = 1e-6};
  star.cpu.memory_bandwidth_bytes_per_s = {.value = 1e9};  // not used below
  const Timeline timeline = simulate(gpu_workers(make_star(star), 1), [](Worker& worker) {
    for (int i = 0; i < 3; ++i) worker.devices()[0]->compute_stream().launch(cost_only(1e6));
  });
  EXPECT_THAT(timeline.notes, testing::ElementsAre("assumed: op overhead of 'test GPU'"));
}

TEST(SimRun, TheMemoryOfDevicesIsNoLimitWhereTheProgramKnowsBetter) {
  StarOptions star;
  star.gpu.memory_bytes = star.cpu.memory_bytes = vendor(1000);
  EngineOptions options = gpu_workers(make_star(star), 1);
  options.limits_memory = false;
  simulate(options, [](Worker& worker) {
    EXPECT_EQ(worker.devices()[0]->allocate(DType::u8, {2000}).size_bytes(), 2000u);
    EXPECT_THROW(worker.cpu().allocate(DType::u8, {2000}), RunError) << "a host";
  });
}

}  // namespace
}  // namespace tandem
