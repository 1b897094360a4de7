// What every engine must do alike with devices, streams and tasks.
#include <atomic>
#include <stdexcept>

#include "tests/conformance/engine_conformance.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// For all files of the suite.
INSTANTIATE_TEST_SUITE_P(Worlds, EveryEngine, testing::ValuesIn(built_worlds()), name_of_world);

TEST_P(EveryEngine, DescribesWhatItOpened) {
  const auto engine = open_world(GetParam(), 2, 2);
  EXPECT_EQ(engine->capabilities().engine, GetParam().engine);
  EXPECT_TRUE(engine->capabilities().carries_values);
  std::atomic<int> programs{0};
  const Timeline timeline = engine->run([&](Worker& worker) {
    programs.fetch_add(1);
    EXPECT_EQ(worker.count(), 2);
    EXPECT_EQ(worker.job(), "worker");
    EXPECT_EQ(worker.task(), worker.index());
    ASSERT_EQ(worker.devices().size(), 2U);
    EXPECT_EQ(worker.cpu().id().type, DeviceType::cpu);
    EXPECT_EQ(worker.cpu().id().index, 0);
    for (int i = 0; i < 2; ++i) {
      Device& device = *worker.devices()[static_cast<std::size_t>(i)];
      EXPECT_EQ(device.id().index, i);
      EXPECT_EQ(device.worker(), worker.index());
      EXPECT_EQ(&worker.device(device.id()), &device);
    }
    EXPECT_THROW(worker.device({"nobody", 0, DeviceType::cpu, 0}), UnavailableError);
    EXPECT_EQ(Task::current().name(), "worker " + std::to_string(worker.index()));
    EXPECT_EQ(Task::current().worker(), &worker);
  });
  EXPECT_EQ(programs.load(), workers_here(GetParam(), 2));
  EXPECT_EQ(timeline.engine, GetParam().engine);
  EXPECT_FALSE(timeline.settings.empty());
}

TEST_P(EveryEngine, ComputesOnItsDevices) {
  run(1, 2, [](Worker& worker) {
    Device& device = *worker.devices()[1];
    const Tensor a = put(worker, device, {1, 2, 3, 4, 5, 6});
    const Tensor b = put(worker, device, {1, 0, 0, 1, 1, 1});
    const Tensor c = device.allocate(DType::f32, {2, 2});
    Stream& stream = device.compute_stream();
    stream.launch(op::gemm(c, a.reshape({2, 3}), b.reshape({3, 2})));
    stream.launch(op::scale_add(c, c, 1, 1));
    EXPECT_THAT(get(worker, c), ElementsAre(8, 10, 20, 22));
  });
}

// What a replica computes whose part of the batch has no rows.
TEST_P(EveryEngine, ComputesProductsOfNoRowsAndOfNoDepth) {
  const Timeline timeline = run(1, 1, [](Worker& worker) {
    Device& device = *worker.devices()[0];
    Stream& stream = device.compute_stream();
    const auto matrix = [&](const Shape& shape) { return device.allocate(DType::f32, shape); };
    stream.launch(op::gemm(matrix({0, 2}), matrix({0, 3}), matrix({3, 2})));
    const Tensor gradient = put(worker, device, {4, 5, 6, 7, 8, 9}).reshape({3, 2});
    stream.launch(op::gemm(gradient, matrix({0, 3}), matrix({0, 2}), true));
    EXPECT_THAT(get(worker, gradient), ElementsAre(0, 0, 0, 0, 0, 0)) << "the sum of no products";
  });
  for (const Record& record : timeline.records) EXPECT_LT(record.end_ns - record.start_ns, 60'000'000'000);
}

TEST_P(EveryEngine, KeepsTheOrderOfAStreamAndOfEvents) {
  run(1, 2, [](Worker& worker) {
    std::vector<int> notes;
    const auto note = [&](int value) {
      return op::host_function("note", {1e6, 0}, [&notes, value] { notes.push_back(value); });
    };
    Stream& first = worker.devices()[0]->stream(kComputeStream);
    Stream& second = worker.devices()[1]->stream(kCommunicationStream);
    for (int i = 0; i < 20; i += 2) {
      first.launch(note(i));
      second.wait(first.record());
      second.launch(note(i + 1));
      first.wait(second.record());
    }
    first.synchronize();
    ASSERT_EQ(notes.size(), 20U);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(notes[static_cast<std::size_t>(i)], i);
    EXPECT_TRUE(Event().is_complete());
    const Event event = second.record();
    event.synchronize();
    EXPECT_TRUE(event.is_complete());
  });
}

TEST_P(EveryEngine, RepeatsWork) {
  run(1, 1, [](Worker& worker) {
    Device& device = *worker.devices()[0];
    const Tensor sum = put(worker, device, {0, 5}), ones = put(worker, device, {1, 1});
    RepeatedWork one, two;
    for (int i = 0; i < 3; ++i) {
      device.repeat(one, [&] { device.compute_stream().launch(op::scale_add(sum, sum, 1, 1)); });  // doubles it
      device.repeat(two, [&] {
        Stream& other = device.stream(3);
        other.wait(device.compute_stream().record());
        other.launch(op::elementwise(kernel::Binary::add, sum, sum, ones));
        device.compute_stream().wait(other.record());
      });
    }
    EXPECT_THAT(get(worker, sum), ElementsAre(7, 47));
  });
}

TEST_P(EveryEngine, ClockGoesForwardWithTheWork) {
  run(1, 1, [](Worker& worker) {
    const Nanoseconds start = worker.now();
    Device& device = *worker.devices()[0];
    const Tensor tensor = device.allocate(DType::f32, {1 << 20});
    device.compute_stream().launch(op::fill(tensor, 1));
    device.synchronize();
    EXPECT_GT(worker.now(), start);
  });
}

TEST_P(EveryEngine, ReachesDevicesOfOtherWorkers) {
  run(2, 1, [](Worker& worker) {
    if (!worker.capabilities().remote_devices || worker.index() != 0) return;
    DeviceId id = worker.devices()[0]->id();
    id.task = 1;
    Device& remote = worker.device(id);
    const Tensor tensor = put(worker, *worker.devices()[0], {4, 5, 6});
    const Tensor there = remote.allocate(DType::f32, {3});
    worker.devices()[0]->compute_stream().copy(there, tensor);
    worker.devices()[0]->synchronize();
    remote.compute_stream().launch(op::scale_add(there, there, 1, 1));
    EXPECT_THAT(get(worker, there), ElementsAre(8, 10, 12));
  });
}

TEST_P(EveryEngine, CountsMemory) {
  run(1, 1, [](Worker& worker) {
    Device& device = *worker.devices()[0];
    const std::int64_t before = device.memory_in_use_bytes();
    {
      const Tensor tensor = device.allocate(DType::f32, {1000});
      EXPECT_EQ(device.memory_in_use_bytes() - before, 4000);
    }
    device.synchronize();
    EXPECT_EQ(device.memory_in_use_bytes(), before);
    EXPECT_GE(device.memory_peak_bytes(), before + 4000);
    EXPECT_THAT(([&] { device.allocate(DType::f32, {std::int64_t{1} << 50}); }),
                testing::ThrowsMessage<RunError>(HasSubstr(device.id().text())));
  });
}

// However late the work is: what a program has in use is what it holds.
TEST_P(EveryEngine, CountsTheMemoryThatTheProgramHolds) {
  run(1, 2, [](Worker& worker) {
    std::vector<Stream*> streams;
    for (Device* device : worker.devices()) streams.push_back(&device->stream(kCommunicationStream));
    for (int i = 0; i < 20; ++i) {
      std::vector<Tensor> tensors;
      for (Device* device : worker.devices()) {
        tensors.push_back(device->allocate(DType::f32, {1000}));
        const Tensor copy = device->allocate(DType::f32, {1000});
        device->compute_stream().launch(op::fill(tensors.back(), i));
        device->compute_stream().copy(copy, tensors.back());
        device->stream(kCommunicationStream).wait(device->compute_stream().record());
      }
      worker.communicator(all_devices(worker)).all_reduce(tensors, Reduction::sum, streams);
    }
    for (Device* device : worker.devices()) {
      EXPECT_EQ(device->memory_in_use_bytes(), 0);
      EXPECT_EQ(device->memory_peak_bytes(), 8000);
    }
  });
}

TEST_P(EveryEngine, RunsFunctionsConcurrently) {
  run(2, 1, [](Worker& worker) {
    Task::current().context() = 5;
    const auto monitor = worker.tasks().make_monitor();
    int arrived = 0;
    std::vector<std::string> names(3);
    worker.tasks().run_concurrently(3, [&](int i) {
      EXPECT_FALSE(Task::current().context().has_value());
      names[static_cast<std::size_t>(i)] = Task::current().name();
      const std::lock_guard lock(*monitor);
      ++arrived;
      monitor->notify_all();
      while (arrived < 3) monitor->wait("the others");
    });
    const std::string self = "worker " + std::to_string(worker.index());
    EXPECT_THAT(names, ElementsAre(self + " replica 0", self + " replica 1", self + " replica 2"));
    EXPECT_EQ(std::any_cast<int>(Task::current().context()), 5);
  });
}

TEST_P(EveryEngine, RethrowsTheFirstFunctionsException) {
  run(1, 1, [](Worker& worker) {
    int ended = 0;
    const auto monitor = worker.tasks().make_monitor();
    EXPECT_THAT(([&] {
                  worker.tasks().run_concurrently(3, [&](int i) {
                    const std::lock_guard lock(*monitor);
                    ++ended;
                    if (i > 0) throw std::runtime_error("function " + std::to_string(i));
                  });
                }),
                testing::ThrowsMessage<std::runtime_error>("function 1"));
    EXPECT_EQ(ended, 3);
  });
}

}  // namespace
}  // namespace tandem
