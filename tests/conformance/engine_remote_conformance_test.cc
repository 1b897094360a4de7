// Devices, streams, events and memory of other workers, on every engine that reaches them: in this process or another.
#include <atomic>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "tests/conformance/engine_conformance.h"

namespace tandem {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

class EveryEngineReaches : public ReachingOthers<EveryEngine> {};
INSTANTIATE_TEST_SUITE_P(Worlds, EveryEngineReaches, testing::ValuesIn(built_worlds()), name_of_world);

// The first compute device of another worker.
Device& device_of(Worker& worker, int other) {
  DeviceId id = worker.devices()[0]->id();
  id.task = other;
  return worker.device(id);
}

std::vector<float> ramp(std::int64_t count, float first) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(first + static_cast<float>(i % 1000));
  return values;
}

TEST_P(EveryEngineReaches, CopiesInBothDirectionsOnStreamsOfBothSides) {
  run(2, 1, [](Worker& worker) {
    if (worker.index() != 0) return;
    Device& here = *worker.devices()[0];
    Device& there = device_of(worker, 1);
    EXPECT_EQ(there.worker(), 1);
    for (const std::int64_t count : {std::int64_t{3}, std::int64_t{1'000'003}}) {
      const std::vector<float> values = ramp(count, 5);
      const Tensor source = put(worker, here, values);
      const Tensor first = there.allocate(DType::f32, {count}), second = there.allocate(DType::f32, {count});
      here.compute_stream().copy(first, source);
      there.compute_stream().wait(here.compute_stream().record());
      there.compute_stream().launch(op::scale_add(second, first, 2, 0));
      const Tensor pushed = here.allocate(DType::f32, {count}), pulled = here.allocate(DType::f32, {count});
      there.compute_stream().copy(pushed, second);
      here.compute_stream().wait(there.compute_stream().record());
      here.compute_stream().copy(pulled, second);
      std::vector<float> doubled = values;
      for (float& value : doubled) value *= 2;
      EXPECT_EQ(get(worker, pushed), doubled);
      EXPECT_EQ(get(worker, pulled), doubled);
      EXPECT_EQ(get(worker, second.flat_slice(1, 2)), std::vector<float>(doubled.begin() + 1, doubled.begin() + 3));
    }
  });
}

// A worker has a second one take what a third one has.
TEST_P(EveryEngineReaches, CopiesBetweenTwoOthers) {
  run(3, 1, [](Worker& worker) {
    if (worker.index() != 0) return;
    Device& second = device_of(worker, 1);
    Device& third = device_of(worker, 2);
    const Tensor source = second.allocate(DType::f32, {1000}), target = third.allocate(DType::f32, {1000});
    second.compute_stream().launch(op::fill(source, 3));
    third.compute_stream().wait(second.compute_stream().record());
    third.compute_stream().copy(target, source);
    third.compute_stream().launch(op::scale_add(target, target, 1, 1));
    EXPECT_THAT(get(worker, target), Each(6.0F));
  });
}

TEST_P(EveryEngineReaches, EventsOrderStreamsOfSeveralWorkers) {
  run(3, 1, [](Worker& worker) {
    if (worker.index() != 0) return;
    std::vector<Stream*> streams;
    for (int other = 0; other < 3; ++other) streams.push_back(&device_of(worker, other).stream(kCommunicationStream));
    Tensor token = put(worker, *worker.devices()[0], {1});
    streams[0]->wait(worker.devices()[0]->compute_stream().record());
    for (int i = 0; i < 12; ++i) {  // doubled wherever it comes by
      Stream& from = *streams[static_cast<std::size_t>(i % 3)];
      Stream& to = *streams[static_cast<std::size_t>((i + 1) % 3)];
      const Tensor next = to.device().allocate(DType::f32, {1});
      to.wait(from.record());
      to.copy(next, token);
      to.launch(op::scale_add(next, next, 1, 1));
      token = next;
    }
    const Event event = streams[0]->record();
    event.synchronize();
    EXPECT_TRUE(event.is_complete());
    EXPECT_THAT(get(worker, token, kCommunicationStream), ElementsAre(4096));
    for (Stream* stream : streams) stream->device().synchronize();
  });
}

TEST_P(EveryEngineReaches, CountsTheMemoryOfOthers) {
  run(2, 1, [](Worker& worker) {
    if (worker.index() != 0) return;
    Device& there = device_of(worker, 1);
    {
      const Tensor tensor = there.allocate(DType::f32, {1000});
      EXPECT_EQ(there.memory_in_use_bytes(), 4000);
    }
    EXPECT_EQ(there.memory_in_use_bytes(), 0);
    EXPECT_EQ(there.memory_peak_bytes(), 4000);
    EXPECT_THAT(([&] { there.allocate(DType::f32, {std::int64_t{1} << 50}); }),
                ThrowsMessage<RunError>(HasSubstr(there.id().text())));
  });
}

// An op that cannot be executed: a row that is not there.
void launch_failing_op(Device& device) {
  const Tensor to = device.allocate(DType::f32, {2, 1}), rows = device.allocate(DType::f32, {1, 1});
  const Tensor indices = device.allocate(DType::i64, {1});
  device.compute_stream().launch(op::fill(to, 0));
  device.compute_stream().launch(op::fill(rows, 0));
  device.compute_stream().launch(op::fill(indices, 7));
  device.compute_stream().launch(op::scatter_rows(kernel::Scatter::add, to, rows, indices));
}

TEST_P(EveryEngineReaches, AnErrorOfWorkThatWasIssuedToAnotherSurfacesHere) {
  EXPECT_THAT(([&] {
                run(2, 1, [](Worker& worker) {
                  if (worker.index() != 0) return;
                  Device& there = device_of(worker, 1);
                  launch_failing_op(there);
                  EXPECT_THAT(([&] { there.compute_stream().synchronize(); }),
                              ThrowsMessage<Error>(HasSubstr(there.id().text())));
                });
              }),
              testing::Throws<Error>());
}

// The other worker meets the failure on its device first, and stops the run.
TEST_P(EveryEngineReaches, AnErrorThatHasStoppedTheRunSurfacesHereAllTheSame) {
  EXPECT_THAT(([&] {
                run(2, 1, [](Worker& worker) {
                  if (worker.index() != 0) return std::this_thread::sleep_for(std::chrono::milliseconds(20));
                  Device& there = device_of(worker, 1);
                  launch_failing_op(there);
                  const Event event = there.compute_stream().record();
                  std::this_thread::sleep_for(std::chrono::milliseconds(60));
                  const auto names_device = ThrowsMessage<Error>(HasSubstr(there.id().text()));
                  EXPECT_THAT(([&] { event.synchronize(); }), names_device);
                  EXPECT_THAT(([&] { there.compute_stream().synchronize(); }), names_device);
                  EXPECT_THAT(([&] { there.synchronize(); }), names_device);
                });
              }),
              testing::Throws<Error>());
}

// The program of worker 1 ends before the ops that others issue to its device, which are executed nevertheless.
TEST_P(EveryEngineReaches, WorkThatNobodyWaitsForIsPartOfTheRun) {
  const Timeline timeline = run(2, 1, [](Worker& worker) {
    if (worker.index() != 0) return;
    worker.begin_step(3);
    Device& there = device_of(worker, 1);
    const Tensor tensor = there.allocate(DType::f32, {1 << 20});
    for (int i = 0; i < 10; ++i) there.compute_stream().launch(op::fill(tensor, i));
    worker.end_step();
  });
  if (workers_here(GetParam(), 2) == 0) return;
  const auto is_one = [](const Record& record) {
    return record.kind == RecordKind::op && record.worker == 1 && record.step == 3;
  };
  const auto records = std::count_if(timeline.records.begin(), timeline.records.end(), is_one);
  EXPECT_LE(records, 10);
  EXPECT_GE(records, GetParam().graphs ? 1 : 10) << "ops of one graph have one record";
}

TEST_P(EveryEngineReaches, WhatSeveralProcessesCannotDoIsRefusedByName) {
  run(2, 1, [](Worker& worker) {
    if (worker.index() != 0) return;
    const auto share = [&] { worker.shared().object("thing", [] { return std::make_shared<int>(1); }); };
    if (worker.capabilities().shared_objects) {
      EXPECT_NO_THROW(share());
    } else {
      EXPECT_THAT(share, ThrowsMessage<UnavailableError>(HasSubstr("'thing' cannot be shared")));
    }
    Stream& there = device_of(worker, 1).compute_stream();
    std::atomic<int> calls{0};
    const auto call = [&] { there.launch(op::host_function("letter", {}, [&] { calls.fetch_add(1); })); };
    if (worker.capabilities().remote_functions) {
      call();
      there.synchronize();
      EXPECT_EQ(calls.load(), 1);
    } else {
      EXPECT_THAT(call, ThrowsMessage<UnavailableError>(AllOf(HasSubstr("'letter'"), HasSubstr("is in another"))));
    }
  });
}

TEST_P(EveryEngineReaches, KeepsObjectsOfAWorker) {
  run(2, 1, [](Worker& worker) {
    const auto number = [&] { return std::make_shared<int>(worker.index()); };
    const auto object = std::static_pointer_cast<int>(worker.shared().kept("number", number));
    EXPECT_EQ(*object, worker.index());
    EXPECT_EQ(worker.shared().kept("number", number), object);
  });
}

// Every worker reads a shared tensor, adds to it and counts the change; nobody sees half of another's.
TEST_P(EveryEngineReaches, SharedTensorsAreChangedOneAtATime) {
  constexpr int kWorkers = 3, kChanges = 20;
  run(kWorkers, 1, [](Worker& worker) {
    const auto shared = worker.shared().tensor("sum", [&] {
      Tensor tensor = device_of(worker, 1).allocate(DType::f32, {1000});
      tensor.device().compute_stream().launch(op::fill(tensor, 0));
      return tensor;
    });
    Device& home = shared->tensor().device();
    EXPECT_EQ(home.worker(), 1);
    for (int i = 0; i < kChanges; ++i) {
      const Tensor seen = home.allocate(DType::f32, {1000});
      std::int64_t version = 0;
      {
        const std::lock_guard lock(*shared);
        version = shared->version();
        home.compute_stream().launch(op::scale_add(seen, shared->tensor(), 1, 0));
        const Tensor one = home.allocate(DType::f32, {1000});
        home.compute_stream().launch(op::fill(one, 1));
        home.compute_stream().launch(op::scale_add(shared->tensor(), one, 1, 1));
        shared->note_change();
      }
      EXPECT_THAT(get(worker, seen), Each(static_cast<float>(version)));
    }
    const DeviceId cpu = worker.devices()[0]->id();
    std::vector<DeviceId> all(kWorkers, cpu);
    for (int task = 0; task < kWorkers; ++task) all[static_cast<std::size_t>(task)].task = task;
    const Tensor nothing = put(worker, *worker.devices()[0], {0});
    Stream* const stream = &worker.devices()[0]->stream(kCommunicationStream);  // others use the first
    stream->wait(worker.devices()[0]->compute_stream().record());
    worker.communicator(all).all_reduce({&nothing, 1}, Reduction::sum, {&stream, 1});
    stream->synchronize();
    const std::lock_guard lock(*shared);
    EXPECT_EQ(shared->version(), kWorkers * kChanges);
    EXPECT_THAT(get(worker, shared->tensor()), Each(static_cast<float>(kWorkers * kChanges)));
  });
}

TEST_P(EveryEngineReaches, ASharedTensorThatOneFailedToMakeIsMadeByTheNext) {
  run(2, 1, [](Worker& worker) {
    if (worker.index() != 0) return;
    EXPECT_THROW(worker.shared().tensor("a", []() -> Tensor { throw std::runtime_error("no luck"); }),
                 std::runtime_error);
    const auto made = worker.shared().tensor("a", [&] { return put(worker, *worker.devices()[0], {5}); });
    const auto found = worker.shared().tensor("a", []() -> Tensor { throw std::runtime_error("it is there"); });
    EXPECT_THAT(get(worker, found->tensor()), ElementsAre(5));
  });
}

TEST_P(EveryEngineReaches, WhoWaitsForASharedTensorForeverIsNamed) {
  EXPECT_THAT(([&] {
                run(2, 1, [](Worker& worker) {
                  const auto shared =
                      worker.shared().tensor("a", [&] { return put(worker, *worker.devices()[0], {5}); });
                  shared->lock();
                  shared->lock();
                });
              }),
              ThrowsMessage<DeadlockError>(AllOf(HasSubstr("worker 0 waits for"), HasSubstr("worker 1 waits for"))));
}

}  // namespace
}  // namespace tandem
