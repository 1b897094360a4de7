// What every engine must do alike: the same program gives the same values, and the same operations in the same order
// on every stream.
#include <atomic>
#include <map>
#include <stdexcept>
#include <tuple>

#include "tests/conformance/engine_conformance.h"

namespace tandem {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

INSTANTIATE_TEST_SUITE_P(Worlds, EveryEngine, testing::ValuesIn(built_worlds()), name_of_world);

// Puts values on a device, the way strategies must: through the worker's CPU.
Tensor put(Worker& worker, Device& device, const std::vector<float>& values) {
  const auto count = static_cast<std::int64_t>(values.size());
  const Tensor host = worker.cpu().allocate(DType::f32, {count});
  std::copy(values.begin(), values.end(), host.values<float>().begin());
  const Tensor tensor = device.allocate(DType::f32, {count});
  device.compute_stream().copy(tensor, host, Category::input);
  return tensor;
}

std::vector<float> get(Worker& worker, const Tensor& tensor, int stream = kComputeStream) {
  const Tensor host = worker.cpu().allocate(tensor.dtype(), tensor.shape());
  tensor.device().stream(stream).copy(host, tensor, Category::other);
  tensor.device().stream(stream).synchronize();
  const std::span<float> values = host.values<float>();
  return {values.begin(), values.end()};
}

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
  EXPECT_EQ(programs.load(), 2);
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

// --- tasks ---------------------------------------------------------------------------------------------------------

TEST_P(EveryEngine, RunsFunctionsConcurrently) {
  run(2, 1, [](Worker& worker) {
    Task::current().context() = 5;
    const auto monitor = worker.make_monitor();
    int arrived = 0;
    std::vector<std::string> names(3);
    worker.run_concurrently(3, [&](int i) {
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
    const auto monitor = worker.make_monitor();
    EXPECT_THAT(([&] {
                  worker.run_concurrently(3, [&](int i) {
                    const std::lock_guard lock(*monitor);
                    ++ended;
                    if (i > 0) throw std::runtime_error("function " + std::to_string(i));
                  });
                }),
                testing::ThrowsMessage<std::runtime_error>("function 1"));
    EXPECT_EQ(ended, 3);
  });
}

// --- collectives ---------------------------------------------------------------------------------------------------

std::vector<float> expected_sum(const std::vector<std::vector<float>>& all) {
  std::vector<float> sum(all.front().size());
  for (const std::vector<float>& values : all) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
  }
  return sum;
}

std::vector<float> values_of_rank(int rank, std::size_t count) {
  std::vector<float> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(static_cast<float>(rank * 10) + static_cast<float>(i % 7));
  return values;
}

void try_collectives(Worker& worker, std::size_t count) {
  Communicator& communicator = worker.communicator(all_devices(worker));
  const auto n = static_cast<std::size_t>(communicator.size());
  const std::vector<Stream*> streams = streams_of(worker, kComputeStream);
  std::vector<std::vector<float>> small, large;
  for (int rank = 0; rank < communicator.size(); ++rank) {
    small.push_back(values_of_rank(rank, count));
    large.push_back(values_of_rank(rank, count * n));
  }
  const auto on_devices = [&](const std::vector<std::vector<float>>& all) {
    std::vector<Tensor> tensors;
    for (std::size_t i = 0; i < worker.devices().size(); ++i) {
      const auto rank = static_cast<std::size_t>(communicator.local_ranks()[i]);
      tensors.push_back(put(worker, *worker.devices()[i], all[rank]));
    }
    return tensors;
  };
  const auto expect = [&](const std::vector<Tensor>& tensors, auto expected, const char* what) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const int rank = communicator.local_ranks()[i];
      EXPECT_EQ(get(worker, tensors[i]), expected(static_cast<std::size_t>(rank))) << what << " on rank " << rank;
    }
  };
  const std::vector<float> sum = expected_sum(small), large_sum = expected_sum(large);
  const auto part_of = [&](const std::vector<float>& whole, std::size_t rank) {
    const auto first = whole.begin() + static_cast<std::ptrdiff_t>(rank * count);
    return std::vector<float>(first, first + static_cast<std::ptrdiff_t>(count));
  };

  std::vector<Tensor> buffers = on_devices(small);
  communicator.all_reduce(buffers, Reduction::sum, streams);
  expect(
      buffers, [&](std::size_t) { return sum; }, "all_reduce");
  buffers = on_devices(small);
  communicator.all_reduce(buffers, Reduction::minimum, streams);
  expect(
      buffers, [&](std::size_t) { return small[0]; }, "all_reduce of the minimum");
  buffers = on_devices(small);
  communicator.reduce(buffers, Reduction::sum, 1, streams);
  expect(
      buffers, [&](std::size_t rank) { return rank == 1 ? sum : small[rank]; }, "reduce");
  buffers = on_devices(small);
  communicator.broadcast(buffers, 1, streams);
  expect(
      buffers, [&](std::size_t) { return small[1]; }, "broadcast");
  std::vector<Tensor> wide = on_devices(large);
  buffers = on_devices(small);
  communicator.reduce_scatter(buffers, wide, Reduction::sum, streams);
  expect(
      buffers, [&](std::size_t rank) { return part_of(large_sum, rank); }, "reduce_scatter");
  communicator.all_gather(wide, buffers, streams);
  expect(
      wide, [&](std::size_t) { return large_sum; }, "all_gather");
}

TEST_P(EveryEngine, CollectivesAreExact) {
  run(2, 2, [](Worker& worker) {
    for (const std::size_t count : {0, 1, 3, 1000}) try_collectives(worker, count);
  });
  run(1, 3, [](Worker& worker) { try_collectives(worker, 5); });
}

TEST_P(EveryEngine, SendsMeetReceivesInOrder) {
  run(2, 1, [](Worker& worker) {
    Communicator& communicator = worker.communicator(all_devices(worker));
    Device& device = *worker.devices()[0];
    const Tensor tensor = put(worker, device, {static_cast<float>(worker.index() + 1)});
    for (int i = 0; i < 3; ++i) {
      if (worker.index() == 0) {
        communicator.send(tensor, 1, device.compute_stream());
        device.compute_stream().launch(op::scale_add(tensor, tensor, 1, 1));
      } else {
        communicator.receive(tensor, 0, device.compute_stream());
        EXPECT_THAT(get(worker, tensor), ElementsAre(static_cast<float>(1 << i)));
      }
    }
    device.synchronize();
  });
}

// --- records -------------------------------------------------------------------------------------------------------

// A data-parallel step without a strategy.
void training_program(Worker& worker, std::vector<float>& result) {
  Communicator& communicator = worker.communicator(all_devices(worker));
  std::vector<Tensor> weights, gradients;
  for (Device* device : worker.devices()) {
    weights.push_back(put(worker, *device, {1, 2, 3, 4}));
    gradients.push_back(device->allocate(DType::f32, {4}));
  }
  for (int step = 0; step < 3; ++step) {
    worker.begin_step(step);
    worker.run_concurrently(static_cast<int>(weights.size()), [&](int i) {
      const auto at = static_cast<std::size_t>(i);
      Stream& stream = worker.devices()[at]->compute_stream();
      stream.launch(op::scale_add(gradients[at], weights[at], 0.5, 0));
      worker.devices()[at]->stream(kCommunicationStream).wait(stream.record());
    });
    communicator.all_reduce(gradients, Reduction::sum, streams_of(worker, kCommunicationStream));
    for (std::size_t i = 0; i < weights.size(); ++i) {
      Device& device = *worker.devices()[i];
      device.compute_stream().wait(device.stream(kCommunicationStream).record());
      Op update = op::scale_add(weights[i], gradients[i], -0.25, 1);
      update.category = Category::update;
      device.compute_stream().launch(std::move(update));
    }
    worker.end_step();
  }
  if (worker.index() == 0) result = get(worker, weights[0]);
}

// What a stream did: kind, category, name, step, bytes, ranks; the same in every world, unlike times.
using Did = std::tuple<RecordKind, Category, std::string, int, double, double, int>;
// By worker, index of the device within the worker (-1 for the host) and stream.
using Sequences = std::map<std::tuple<int, int, int>, std::vector<Did>>;

Sequences sequences_of(const Timeline& timeline) {
  Sequences sequences;
  for (const Record& record : timeline.records) {
    int index = kHostLane;
    if (record.device != kHostLane) {
      index = DeviceId::parse(timeline.devices[static_cast<std::size_t>(record.device)].name, {})->index;
    }
    sequences[{record.worker, index, record.stream}].emplace_back(
        record.kind, record.category, record.name, record.step, record.bytes, record.flops, record.ranks);
  }
  return sequences;
}

TEST(Engines, AgreeOnValuesAndOnTheSequenceOfOperations) {
  std::vector<World> worlds = built_worlds();
  std::erase_if(worlds, [](const World& world) { return !reason_to_skip(world).empty(); });
  ASSERT_FALSE(worlds.empty());
  std::vector<float> first_values;
  Sequences first_sequences;
  for (const World& world : worlds) {
    std::vector<float> values;
    const Timeline timeline = open_world(world, 2, 2)->run([&](Worker& worker) { training_program(worker, values); });
    const Sequences sequences = sequences_of(timeline);
    if (&world == &worlds.front()) {
      first_values = values;
      first_sequences = sequences;
    }
    EXPECT_EQ(values, first_values) << world;
    EXPECT_EQ(sequences, first_sequences) << world;
  }
  EXPECT_THAT(first_values, ElementsAre(0.125, 0.25, 0.375, 0.5));
  // Two streams of each of four devices and the steps of two workers.
  EXPECT_EQ(first_sequences.size(), 2U * 2 * 2 + 2);
}

TEST_P(EveryEngine, RecordsAreOrderedAndLieWithinTheirSteps) {
  std::vector<float> values;
  const Timeline timeline = run(2, 2, [&](Worker& worker) { training_program(worker, values); });
  const auto key = [](const Record& r) { return std::tie(r.start_ns, r.worker, r.device, r.stream); };
  EXPECT_TRUE(std::is_sorted(timeline.records.begin(), timeline.records.end(),
                             [&](const Record& a, const Record& b) { return key(a) < key(b); }));
  std::map<std::pair<int, int>, const Record*> steps;
  for (const Record& record : timeline.records) {
    if (record.kind == RecordKind::step) steps[{record.worker, record.step}] = &record;
  }
  EXPECT_EQ(steps.size(), 2U * 3);
  std::map<std::int64_t, int> ranks_of_call;
  for (const Record& record : timeline.records) {
    EXPECT_LE(record.start_ns, record.end_ns);
    if (record.kind == RecordKind::step || record.step == kNoStep) continue;
    const Record& step = *steps.at({record.worker, record.step});
    EXPECT_GE(record.start_ns, step.start_ns) << record.name;
    EXPECT_LE(record.end_ns, step.end_ns) << record.name;
    if (record.kind == RecordKind::collective) ++ranks_of_call[record.sequence];
  }
  EXPECT_EQ(ranks_of_call.size(), 3U);
  EXPECT_THAT(ranks_of_call, Each(testing::Pair(testing::_, 4)));
}

}  // namespace
}  // namespace tandem
