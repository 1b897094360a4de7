// Which thread of a simulated processor runs when, against closed forms: the rules of engine/threads/cores.h.
#include <fmt/format.h>

#include <algorithm>

#include "tests/engine/sim_support.h"

namespace tandem {
namespace {

constexpr double kWakeUpS = 50e-6, kHandOverS = 5e-6;

DeviceModel processor(int cores) {
  DeviceModel model = device_model("cpu", cores, 0);
  model.wake_up_s = vendor(kWakeUpS);
  model.hand_over_s = vendor(kHandOverS);
  return model;
}

Op work(std::string_view name, double seconds) {
  Op op = cost_only(seconds * kFlopsPerS);
  op.name = name;
  return op;
}

// The ops by their start, as "name start..end" in microseconds.
std::vector<std::string> ops_of(const Timeline& timeline) {
  std::vector<std::string> texts;
  for (const Record& record : records_of(timeline, RecordKind::op)) {
    texts.push_back(fmt::format("{} {}..{}", record.name.text(), record.start_ns / 1000, record.end_ns / 1000));
  }
  return texts;
}

Stream& stream_of(Worker& worker, int device, int index = kComputeStream) {
  return worker.devices()[static_cast<std::size_t>(device)]->stream(index);
}

TEST(SimCores, NoMoreThreadsRunThanThereAreCores) {
  const Timeline timeline = simulate(cpu_worker(make_cpu(processor(2)), 3), [](Worker& worker) {
    for (int d = 0; d < 3; ++d) stream_of(worker, d).launch(work(std::to_string(d), 300e-6));
    for (Device* device : worker.devices()) device->synchronize();
  });
  // The program wakes up for 50 us and issues all three; the first stream wakes the other core, the second takes over
  // the program's once it waits, and the third that of the first.
  EXPECT_THAT(ops_of(timeline), testing::ElementsAre("1 55..355", "0 100..400", "2 360..660"));
}

TEST(SimCores, StreamsTakeTurnsOfAMillisecondAtTheEndsOfOps) {
  const Timeline timeline = simulate(cpu_worker(make_cpu(processor(1)), 2), [](Worker& worker) {
    for (int i = 0; i < 3; ++i) stream_of(worker, 0).launch(work("a", 600e-6));
    for (int i = 0; i < 3; ++i) stream_of(worker, 1).launch(work("b", 600e-6));
    stream_of(worker, 0).synchronize();
    stream_of(worker, 1).synchronize();
  });
  EXPECT_THAT(ops_of(timeline), testing::ElementsAre("a 55..655", "a 655..1255", "b 1260..1860", "b 1860..2460",
                                                     "a 2465..3065", "b 3075..3675"));
}

TEST(SimCores, TasksGoBeforeStreams) {
  Nanoseconds returned_ns = 0;
  const Timeline timeline = simulate(cpu_worker(make_cpu(processor(1)), 2), [&](Worker& worker) {
    const Event first = [&] {
      stream_of(worker, 0).launch(work("a", 100e-6));
      return stream_of(worker, 0).record();
    }();
    stream_of(worker, 0).launch(work("a", 100e-6));
    stream_of(worker, 1).launch(work("b", 100e-6));
    first.synchronize();
    returned_ns = worker.now();
    for (Device* device : worker.devices()) device->synchronize();
  });
  EXPECT_EQ(returned_ns, 160'000) << "after the first op, before the next one of either stream";
  EXPECT_THAT(ops_of(timeline), testing::ElementsAre("a 55..155", "a 165..265", "b 275..375"));
}

TEST(SimCores, AThreadThatHasWaitedForLongSharesACore) {
  const Timeline timeline = simulate(cpu_worker(make_cpu(processor(1)), 2), [](Worker& worker) {
    stream_of(worker, 0).launch(work("a", 50e-3));
    stream_of(worker, 1).launch(work("b", 10e-3));
    for (Device* device : worker.devices()) device->synchronize();
  });
  // b begins 22.5 ms after it was issued, and each has half of the core until b ends.
  EXPECT_THAT(ops_of(timeline), testing::ElementsAre("a 55..60055", "b 22550..42550"));
}

TEST(SimCores, WakingACoreTakesLongerTheLongerItHasBeenIdle) {
  const auto delay_after = [](double idle_s) {
    DeviceModel model = processor(2);
    model.wake_ups = {{1e-3, 60e-6}, {4e-3, 80e-6}};
    const Timeline timeline = simulate(cpu_worker(make_cpu(model), 1), [&](Worker& worker) {
      stream_of(worker, 0, 1).launch(work("idle", idle_s));
      stream_of(worker, 0, 1).synchronize();
      stream_of(worker, 0).launch(work("woken", 1e-6));
      stream_of(worker, 0).synchronize();
    });
    const auto ops = records_of(timeline, RecordKind::op);
    return ops[1].start_ns - ops[0].end_ns - 5'000;  // the program takes over the stream's core
  };
  // The program's core is idle from when it has spun for 20 us, 60 us before the first op begins.
  EXPECT_EQ(delay_after(30e-6), 50'000) << "less than the first sample";
  EXPECT_EQ(delay_after(1e-3 - 65e-6), 60'000);
  EXPECT_EQ(delay_after(2e-3 - 65e-6), 70'000) << "the logarithm of the time is interpolated";
  EXPECT_EQ(delay_after(50e-3), 80'000) << "more than the last one";
}

TEST(SimCores, AThreadSpinsForAWhileBeforeItGivesItsCoreUp) {
  const auto gap_after = [](double seconds) {
    const Timeline timeline = simulate(cpu_worker(make_cpu(processor(2)), 2), [&](Worker& worker) {
      Event done = stream_of(worker, 0).record();
      stream_of(worker, 1).launch(work("warm", 200e-6));
      stream_of(worker, 0).launch(work("first", 200e-6 + seconds));
      done = stream_of(worker, 0).record();
      stream_of(worker, 1).wait(done);
      stream_of(worker, 1).launch(work("second", 1e-6));
      stream_of(worker, 1).synchronize();
    });
    const auto ops = records_of(timeline, RecordKind::op);
    const auto named = [&](std::string_view name) {
      return *std::find_if(ops.begin(), ops.end(), [&](const Record& op) { return op.name.text() == name; });
    };
    return named("second").start_ns - named("first").end_ns;
  };
  EXPECT_EQ(gap_after(-35e-6), 0) << "the second waited for less than 20 us";
  EXPECT_EQ(gap_after(100e-6), 5'000) << "it slept, and took over the core of the first";
}

TEST(SimCores, ARankOfACollectiveEndsOnceItHasACore) {
  const auto topology = std::make_shared<Topology>(*make_cpu(processor(2)));
  topology->facts().collectives.push_back({.operation = "all_reduce", .devices = 3, .bytes = 4096, .time_s = 100e-6});
  const Timeline timeline = simulate(cpu_worker(topology, 3), [](Worker& worker) {
    std::vector<DeviceId> ids;
    std::vector<Tensor> tensors;
    std::vector<Stream*> streams;
    for (Device* device : worker.devices()) {
      ids.push_back(device->id());
      tensors.push_back(device->allocate(DType::f32, {1024}));
      streams.push_back(&device->compute_stream());
    }
    worker.communicator(ids).all_reduce(tensors, Reduction::sum, streams);
    for (Device* device : worker.devices()) device->synchronize();
  });
  std::vector<Nanoseconds> ends;
  for (const Record& record : records_of(timeline, RecordKind::collective)) ends.push_back(record.end_ns);
  std::sort(ends.begin(), ends.end());
  ASSERT_EQ(ends.size(), 3U);
  EXPECT_GE(ends[2] - ends[0], 5'000) << "there are two cores for three ranks";
  EXPECT_EQ(collective_timings(timeline.records).front().until_first_end_ns, 100'000);
}

// Whoever ends a call of several machines runs on one of them; the threads of the others do not wait for it.
TEST(SimCores, RanksOfOtherMachinesDoNotWaitForTheLastOnesThread) {
  const auto model = std::make_shared<const DeviceModel>(processor(1));
  const auto topology = std::make_shared<Topology>("two machines");
  std::vector<NodeIndex> nodes;
  for (int worker = 0; worker < 2; ++worker) {
    nodes.push_back(topology->add_node(
        {.name = fmt::format("w{}.cpu0", worker), .kind = NodeKind::cpu, .worker = worker, .device = model}));
  }
  topology->add_link(nodes[0], nodes[1],
                     std::make_shared<const LinkModel>(LinkModel{
                         .kind = LinkKind::network, .bandwidth_bytes_per_s = vendor(1e9), .latency_s = vendor(10e-6)}));
  EngineOptions options;
  options.topology = topology;
  options.workers.clear();
  for (int task = 0; task < 2; ++task) {
    options.workers.push_back({.task = task, .device_type = DeviceType::cpu, .device_count = 1});
  }
  const Timeline timeline = simulate(std::move(options), [](Worker& worker) {
    const std::vector<DeviceId> ids = {{"worker", 0, DeviceType::cpu, 0}, {"worker", 1, DeviceType::cpu, 0}};
    Stream* const stream = &stream_of(worker, 0);
    stream->launch(work("before", worker.index() == 0 ? 50e-6 : 500e-6));
    const Tensor tensor = worker.devices().front()->allocate(DType::f32, {1000});
    worker.communicator(ids).all_reduce({&tensor, 1}, Reduction::sum, {&stream, 1});
    worker.devices().front()->synchronize();
  });
  const auto calls = records_of(timeline, RecordKind::collective);
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_LE(std::abs(calls[0].end_ns - calls[1].end_ns), 50'000) << "the other one's core was idle";
}

}  // namespace
}  // namespace tandem
