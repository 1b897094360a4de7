// What a run on the cpu engine does when all goes well.
#include "engine/cpu/cpu_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>

#include "tests/engine/run_on_cpu.h"

namespace tandem {
namespace {

using testing::ElementsAre;

TEST(CpuEngine, DescribesItself) {
  const auto engine = open_cpu_engine(cpu_options(1, 2));
  const Capabilities& capabilities = engine->capabilities();
  EXPECT_EQ(capabilities.engine, "cpu");
  EXPECT_TRUE(capabilities.carries_values);
  EXPECT_FALSE(capabilities.deterministic);
  EXPECT_THAT(capabilities.device_types, ElementsAre(DeviceType::cpu));
  const Timeline timeline = engine->run([](Worker&) {});
  EXPECT_EQ(timeline.engine, "cpu");
  EXPECT_THAT(timeline.settings,
              testing::AllOf(testing::Contains(testing::Key("hardware_threads")),
                             testing::Contains(testing::Key("blas")), testing::Contains(testing::Key("compiler"))));
  ASSERT_EQ(timeline.devices.size(), 2U);
  EXPECT_EQ(timeline.devices[1].name, "/job:worker/replica:0/task:0/device:CPU:1");
}

TEST(CpuEngine, WorkersKnowThemselvesAndTheCluster) {
  EngineOptions options;
  options.workers = {{.job = "chief", .task = 0, .device_count = 2}, {.job = "ps", .task = 1, .device_count = 0}};
  const Timeline timeline = open_cpu_engine(options)->run([](Worker& worker) {
    EXPECT_EQ(worker.count(), 2);
    EXPECT_EQ(worker.job(), worker.index() == 0 ? "chief" : "ps");
    EXPECT_EQ(worker.task(), worker.index());
    EXPECT_EQ(worker.devices().size(), worker.index() == 0 ? 2U : 0U);
    EXPECT_EQ(worker.cpu().id().index, 0);
    if (worker.index() == 0) {
      EXPECT_EQ(worker.devices()[0], &worker.cpu());
    }
    const DeviceId ps{"ps", 1, DeviceType::cpu, 0};
    EXPECT_EQ(worker.device(ps).worker(), 1);
    EXPECT_EQ(worker.device(ps).index(), 2);
    EXPECT_THAT(([&] {
                  worker.device({"ps", 0, DeviceType::cpu, 0});
                }),
                testing::ThrowsMessage<UnavailableError>(
                    testing::AllOf(testing::HasSubstr("no device /job:ps/replica:0/task:0/device:CPU:0"),
                                   testing::HasSubstr("/job:chief/replica:0/task:0/device:CPU:1"))));
    EXPECT_EQ(&Task::current(), &Task::current());
    EXPECT_EQ(Task::current().worker(), &worker);
    EXPECT_EQ(Task::current().name(), "worker " + std::to_string(worker.index()));
  });
  EXPECT_EQ(timeline.devices.size(), 3U) << "the parameter server has its CPU";
  EXPECT_EQ(timeline.devices[2].worker, 1);
}

TEST(CpuEngine, RecordsOpsWithinStepsInOrder) {
  const Timeline timeline = run_on_cpu(2, 2, [](Worker& worker) {
    for (int step = 0; step < 3; ++step) {
      worker.begin_step(step);
      for (Device* device : worker.devices()) {
        const Tensor tensor = device->allocate(DType::f32, {1000});
        Op fill = op::fill(tensor, 1);
        fill.category = Category::update;
        device->compute_stream().launch(std::move(fill));
      }
      worker.end_step();
    }
    worker.cpu().compute_stream().launch(op::host_function("outside", {}, [] {}));
  });
  int steps = 0, ops = 0, outside = 0;
  const Record* last = nullptr;
  for (const Record& record : timeline.records) {
    if (last != nullptr) {
      EXPECT_LE(std::tie(last->start_ns, last->worker, last->device, last->stream),
                std::tie(record.start_ns, record.worker, record.device, record.stream));
    }
    last = &record;
    EXPECT_LE(record.start_ns, record.end_ns);
    if (record.kind == RecordKind::step) {
      ++steps;
      EXPECT_EQ(record.device, kNoDevice);
      EXPECT_EQ(record.name, "step " + std::to_string(record.step));
    } else if (record.name == "outside") {
      ++outside;
      EXPECT_EQ(record.step, kNoStep);
    } else {
      ++ops;
      EXPECT_EQ(record.name, "fill");
      EXPECT_EQ(record.category, Category::update);
      EXPECT_EQ(record.bytes, 4000);
      EXPECT_EQ(record.worker, record.device / 2);
      for (const Record& step : timeline.records) {
        if (step.kind != RecordKind::step || step.step != record.step || step.worker != record.worker) continue;
        EXPECT_LE(step.start_ns, record.start_ns);
        EXPECT_GE(step.end_ns, record.end_ns);
      }
    }
  }
  EXPECT_EQ(steps, 2 * 3);
  EXPECT_EQ(ops, 2 * 2 * 3);
  EXPECT_EQ(outside, 2);
}

TEST(ThreadWorker, RunsFunctionsConcurrentlyInTasksOfTheirOwn) {
  run_on_cpu(2, 1, [](Worker& worker) {
    Task::current().context() = 1;
    const auto monitor = worker.tasks().make_monitor();
    int arrived = 0;
    std::vector<std::string> names(3);
    worker.tasks().run_concurrently(3, [&](int i) {
      EXPECT_FALSE(Task::current().context().has_value());
      EXPECT_EQ(Task::current().worker(), &worker);
      names[static_cast<std::size_t>(i)] = Task::current().name();
      const std::lock_guard lock(*monitor);
      ++arrived;
      monitor->notify_all();
      while (arrived < 3) monitor->wait("the others");
    });
    const std::string self = "worker " + std::to_string(worker.index());
    EXPECT_THAT(names, ElementsAre(self + " replica 0", self + " replica 1", self + " replica 2"));
    EXPECT_EQ(Task::current().name(), self);
    EXPECT_TRUE(Task::current().context().has_value());
    worker.tasks().run_concurrently(0, [](int) { FAIL(); });
  });
}

TEST(ThreadWorker, NestsConcurrentFunctions) {
  std::atomic<int> calls{0};
  run_on_cpu(1, 1, [&](Worker& worker) {
    for (int round = 0; round < 50; ++round) {
      worker.tasks().run_concurrently(
          3, [&](int) { worker.tasks().run_concurrently(2, [&](int) { calls.fetch_add(1); }); });
    }
  });
  EXPECT_EQ(calls.load(), 50 * 3 * 2);
}

TEST(ThreadWorker, AMonitorIsAMutex) {
  std::int64_t sum = 0;
  run_on_cpu(1, 1, [&](Worker& worker) {
    const auto monitor = worker.tasks().make_monitor();
    worker.tasks().run_concurrently(4, [&](int) {
      for (int i = 0; i < 5000; ++i) {
        const std::lock_guard lock(*monitor);
        ++sum;
      }
    });
  });
  EXPECT_EQ(sum, 4 * 5000);
}

TEST(ThreadWorker, GivesTheSameCommunicatorForTheSameDevices) {
  run_on_cpu(2, 2, [](Worker& worker) {
    const std::vector<DeviceId> all = all_devices(2, 2);
    const std::vector<DeviceId> reversed(all.rbegin(), all.rend());
    Communicator& communicator = worker.communicator(all);
    EXPECT_EQ(&communicator, &worker.communicator(std::vector<DeviceId>(all)));
    EXPECT_NE(&communicator, &worker.communicator(reversed));
    EXPECT_EQ(communicator.size(), 4);
    const int first = worker.index() * 2;
    EXPECT_THAT(communicator.local_ranks(), ElementsAre(first, first + 1));
    EXPECT_THAT(worker.communicator(reversed).local_ranks(), ElementsAre(2 - first, 3 - first));
    EXPECT_THAT(communicator.local_devices(), ElementsAre(worker.devices()[0], worker.devices()[1]));
  });
}

TEST(CpuEngine, RunsAgain) {
  const auto engine = open_cpu_engine(cpu_options(2, 1));
  for (int run = 0; run < 3; ++run) {
    std::atomic<int> programs{0};
    engine->run([&](Worker&) { programs.fetch_add(1); });
    EXPECT_EQ(programs.load(), 2);
  }
}

}  // namespace
}  // namespace tandem
