// Time of simulated collectives, at both fidelities, against closed forms.
#include <cmath>
#include <numeric>

#include "tests/engine/sim_support.h"

namespace tandem {
namespace {

using Call = std::function<void(Communicator&, std::span<const Tensor>, std::span<Stream* const>)>;

// Runs one in-place call on buffers of `bytes` over all GPUs of the job and returns its records.
std::vector<Record> run_call(EngineOptions options, std::int64_t bytes, const Call& call) {
  std::vector<DeviceId> ids;
  for (const WorkerSpec& worker : options.workers) {
    for (int i = 0; i < worker.device_count; ++i) ids.push_back({worker.job, worker.task, worker.device_type, i});
  }
  const Timeline timeline = simulate(std::move(options), [&](Worker& worker) {
    Communicator& communicator = worker.communicator(ids);
    std::vector<Tensor> buffers;
    std::vector<Stream*> streams;
    for (Device* device : communicator.local_devices()) {
      buffers.push_back(device->allocate(DType::u8, {bytes}));
      streams.push_back(&device->stream(kCommunicationStream));
    }
    call(communicator, buffers, streams);
  });
  return records_of(timeline, RecordKind::collective);
}

std::vector<Record> all_reduce(EngineOptions options, std::int64_t bytes) {
  return run_call(std::move(options), bytes, [](Communicator& communicator, auto buffers, auto streams) {
    communicator.all_reduce(buffers, Reduction::sum, streams);
  });
}

Nanoseconds all_reduce_ns(EngineOptions options, std::int64_t bytes) {
  return duration_ns(all_reduce(std::move(options), bytes).front());
}

EngineOptions ring_of(int gpus, CollectiveFidelity fidelity, StarOptions star = {}) {
  star.workers = gpus;
  EngineOptions options = gpu_workers(make_star(star), gpus);
  options.collectives = fidelity;
  return options;
}

// 2 (n - 1) steps, each of a share of the bytes over two links' latency.
double ring_s(int n, double bytes, double bytes_per_s = kLinkBytesPerS, double latency_s = kLinkLatencyS) {
  return 2 * (n - 1) * (2 * latency_s + bytes / n / bytes_per_s);
}

class RingOf : public testing::TestWithParam<int> {};

TEST_P(RingOf, TakesTheTimeOfItsFormulaAtBothFidelities) {
  const int n = GetParam();
  const std::int64_t bytes = 64'000'000;
  const auto formula_ns = static_cast<double>(std::llround(ring_s(n, bytes) * 1e9));
  EXPECT_NEAR(all_reduce_ns(ring_of(n, CollectiveFidelity::fluid), bytes), formula_ns, 1);
  EXPECT_NEAR(all_reduce_ns(ring_of(n, CollectiveFidelity::message), bytes), formula_ns, 1);
}

INSTANTIATE_TEST_SUITE_P(SimCollective, RingOf, testing::Values(2, 8, 64),
                         [](const auto& test) { return std::to_string(test.param); });

TEST(SimCollective, TheSlowestEdgeBoundsARing) {
  const int n = 8;
  const double slow_s = ring_s(n, 64e6, kLinkBytesPerS / 10);
  for (const auto fidelity : {CollectiveFidelity::fluid, CollectiveFidelity::message}) {
    const Nanoseconds time = all_reduce_ns(ring_of(n, fidelity, {.slow = {3}}), 64'000'000);
    EXPECT_NEAR(static_cast<double>(time), slow_s * 1e9, 1);
  }
}

TEST(SimCollective, FollowsItsFiguresInTheExpectedDirection) {
  const auto time = [](StarOptions star) {
    return all_reduce_ns(ring_of(8, CollectiveFidelity::fluid, std::move(star)), 64'000'000);
  };
  const Nanoseconds usual = time({});
  EXPECT_LT(time({.bytes_per_s = 2 * kLinkBytesPerS}), usual);
  EXPECT_GT(time({.bytes_per_s = kLinkBytesPerS / 2}), usual);
  EXPECT_LT(time({.latency_s = kLinkLatencyS / 2}), usual);
  EXPECT_GT(time({.latency_s = kLinkLatencyS * 2}), usual);
}

TEST(SimCollective, TwoRingsOnOneNetworkShareIt) {
  EngineOptions options = gpu_workers(make_star({.workers = 4}), 4);
  const Timeline timeline = simulate(options, [](Worker& worker) {
    Communicator& communicator = worker.communicator(gpus_of(4));
    Device& gpu = *worker.devices()[0];
    for (int stream = 0; stream < 2; ++stream) {
      const std::vector<Tensor> buffers = {gpu.allocate(DType::u8, {40'000'000})};
      const std::vector<Stream*> streams = {&gpu.stream(stream)};
      communicator.all_reduce(buffers, Reduction::sum, streams);
    }
  });
  const double alone_s = 2 * 3 * 10e6 / kLinkBytesPerS;
  for (const Record& record : records_of(timeline, RecordKind::collective)) {
    EXPECT_EQ(duration_ns(record), std::llround((2 * alone_s + 2 * 3 * 2 * kLinkLatencyS) * 1e9));
  }
}

TEST(SimCollective, ACopyOnOneEdgeOfARingSlowsThatEdgeFromThenOn) {
  EngineOptions options = gpu_workers(make_star({.workers = 4}), 4);
  const Timeline timeline = simulate(options, [](Worker& worker) {
    Device& gpu = *worker.devices()[0];
    const std::vector<Tensor> buffers = {gpu.allocate(DType::u8, {40'000'000})};
    const std::vector<Stream*> streams = {&gpu.stream(0)};
    worker.communicator(gpus_of(4)).all_reduce(buffers, Reduction::sum, streams);  // 60 MB on every edge: 6 ms
    if (worker.index() != 0) return;
    worker.cpu().compute_stream().launch(cost_only(2e9));  // 2 ms
    const Event event = worker.cpu().compute_stream().record();
    gpu.stream(1).wait(event);
    gpu.stream(1).copy(worker.cpu().allocate(DType::u8, {10'000'000}), gpu.allocate(DType::u8, {10'000'000}));
  });
  const auto copies = records_of(timeline, RecordKind::copy);
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(duration_ns(copies[0]), 4000 + 2'000'000);  // at half the bandwidth
  for (const Record& record : records_of(timeline, RecordKind::collective)) {
    EXPECT_EQ(record.end_ns, 7'000'000 + 6 * 4000);  // the edge carried 10 MB more
  }
}

TEST(SimCollective, GatherAndScatterTakeHalfOfAnAllReduce) {
  for (const auto fidelity : {CollectiveFidelity::fluid, CollectiveFidelity::message}) {
    const auto gather =
        run_call(ring_of(4, fidelity), 1'000'000, [](Communicator& communicator, auto small, auto streams) {
          const std::vector<Tensor> large = {small[0].device().allocate(DType::u8, {4'000'000})};
          communicator.all_gather(large, small, streams);
          communicator.reduce_scatter(small, large, Reduction::sum, streams);
        });
    ASSERT_EQ(gather.size(), 8u);
    for (const Record& record : gather) {
      EXPECT_EQ(duration_ns(record), std::llround(ring_s(4, 4e6) / 2 * 1e9));
      EXPECT_EQ(record.bytes, 4e6);
    }
  }
}

std::vector<Record> all_to_all(EngineOptions options, std::int64_t bytes) {
  return run_call(std::move(options), bytes, [](Communicator& communicator, auto inputs, auto streams) {
    std::vector<Tensor> outputs;
    for (const Tensor& input : inputs) outputs.push_back(input.device().allocate(DType::u8, {input.element_count()}));
    communicator.all_to_all(outputs, inputs, streams);
  });
}

// n - 1 steps, in each of which every device sends and receives one part.
TEST(SimCollective, AllToAllExchangesPairwise) {
  for (const auto fidelity : {CollectiveFidelity::fluid, CollectiveFidelity::message}) {
    for (const int n : {2, 3, 8}) {
      const auto records = all_to_all(ring_of(n, fidelity), 24'000'000);
      ASSERT_EQ(records.size(), static_cast<std::size_t>(n));
      for (const Record& record : records) {
        EXPECT_EQ(duration_ns(record), std::llround(ring_s(n, 24e6) / 2 * 1e9)) << n;
        EXPECT_EQ(record.bytes, 24e6);
        EXPECT_EQ(record.name, "all_to_all");
      }
    }
  }
}

TEST(SimCollective, AllToAllOnOneCpuCopiesWhatEveryDeviceReceives) {
  const double seconds = 2 * 1e6 / kMemoryBytesPerS;  // read and written once
  EXPECT_EQ(duration_ns(all_to_all(cpu_worker(make_cpu(device_model("cpu", 4, 0)), 4), 1'000'000).front()),
            std::llround(seconds * 1e9));
}

TEST(SimCollective, ChainsFillAndThenStream) {
  const double bytes = 64e6;  // 64 chunks
  const double chunk_s = bytes / 64 / kLinkBytesPerS;
  const double expected_s = 64 * chunk_s + 6 * chunk_s + 7 * 2 * kLinkLatencyS;  // 7 edges
  for (const auto fidelity : {CollectiveFidelity::fluid, CollectiveFidelity::message}) {
    const auto broadcast = run_call(ring_of(8, fidelity), 64'000'000, [](Communicator& c, auto buffers, auto streams) {
      c.broadcast(buffers, 3, streams);
      c.reduce(buffers, Reduction::sum, 5, streams);
    });
    ASSERT_EQ(broadcast.size(), 16u);
    for (const Record& record : broadcast) EXPECT_NEAR(duration_ns(record), expected_s * 1e9, 1) << record.name;
  }
}

TEST(SimCollective, RecordsStartAtTheirOwnArrivalAndEndTogether) {
  const Timeline timeline = simulate(gpu_workers(make_star(), 2), [](Worker& worker) {
    Device& gpu = *worker.devices()[0];
    const std::vector<Tensor> buffers = {gpu.allocate(DType::f32, {10})};
    const std::vector<Stream*> streams = {&gpu.stream(0)};
    if (worker.index() == 1) gpu.stream(0).launch(cost_only(5e9));
    worker.communicator(gpus_of(2)).all_reduce(buffers, Reduction::sum, streams);
  });
  const auto records = records_of(timeline, RecordKind::collective);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].start_ns, 0);
  EXPECT_EQ(records[1].start_ns, 5'000'000);
  EXPECT_EQ(records[0].end_ns, records[1].end_ns);
  EXPECT_EQ(records[0].ranks, 2);
  EXPECT_EQ(records[0].bytes, 40);
  EXPECT_EQ(records[0].sequence, records[1].sequence);
  EXPECT_EQ(records[0].name, "all_reduce");
}

TEST(SimCollective, OneDeviceTransfersNothing) {
  EXPECT_EQ(all_reduce_ns(ring_of(1, CollectiveFidelity::fluid), 64'000'000), 0);
}

TEST(SimCollective, OnOneCpuDevicesWorkThroughItsMemory) {
  const double share = 3 * 1e6 / 4;  // (n - 1) / n of the bytes, reduced and then copied
  const double seconds = 3 * share / kMemoryBytesPerS + 2 * share / kMemoryBytesPerS;
  EXPECT_EQ(all_reduce_ns(cpu_worker(make_cpu(device_model("cpu", 4, 0)), 4), 1'000'000), std::llround(seconds * 1e9));
  EXPECT_EQ(all_reduce_ns(cpu_worker(make_cpu(device_model("cpu", 2, 0)), 4), 1'000'000),
            std::llround(2 * seconds * 1e9));
}

// Two machines of three devices each, which share one core: three of them use its memory better than one can alone.
EngineOptions crowded_machines(CollectiveFidelity fidelity) {
  const auto rate = [](double bytes_per_s) {
    return std::vector<RateSample>{{.bytes = 1, .bytes_per_s = bytes_per_s}};
  };
  StarOptions star;
  star.cpu = device_model("crowded CPU", 1, 0);
  star.cpu.rates = {{.concurrency = 1, .dtype = DType::f32, .gemm = {}, .memory = rate(1e12), .copy = rate(1e9)},
                    {.concurrency = 3, .dtype = DType::f32, .gemm = {}, .memory = rate(1e12), .copy = rate(3e9)}};
  star.bytes_per_s = 1e12;  // so that only copies inside a machine matter
  star.latency_s = 0;
  EngineOptions options;
  options.workers = {{.task = 0, .topology_worker = 0, .device_count = 3},
                     {.task = 1, .topology_worker = 1, .device_count = 3}};
  options.topology = make_star(star);
  options.collectives = fidelity;
  return options;
}

// What the hops of one ring step inside each machine take as copies of streams: 0 to 1 and 1 to 2 at the same time.
Nanoseconds step_of_copies_ns(EngineOptions options, std::int64_t bytes) {
  const Timeline timeline = simulate(std::move(options), [&](Worker& worker) {
    for (std::size_t i = 0; i < 2; ++i) {
      Device& from = *worker.devices()[i];
      from.stream(kCommunicationStream)
          .copy(worker.devices()[i + 1]->allocate(DType::u8, {bytes}), from.allocate(DType::u8, {bytes}));
    }
  });
  Nanoseconds longest = 0;
  for (const Record& record : records_of(timeline, RecordKind::copy)) longest = std::max(longest, duration_ns(record));
  return longest;
}

TEST(SimCollective, AHopInsideACrowdedMachineTakesAsLongAsACopy) {
  const std::int64_t share = 1'000'000;
  for (const auto fidelity : {CollectiveFidelity::message, CollectiveFidelity::fluid}) {
    const Nanoseconds step_ns = step_of_copies_ns(crowded_machines(fidelity), share);
    EXPECT_EQ(step_ns, 1'000'000) << "at the rate of one device alone, which two of three together do not exceed";
    EXPECT_EQ(all_reduce_ns(crowded_machines(fidelity), 6 * share), 2 * 5 * step_ns);
  }
}

// The time in which a chain fills has the same rates as its steady state: 2 chunks over 5 edges are 6 steps.
TEST(SimCollective, AChainThroughCrowdedMachinesFillsAtTheRateOfItsCopies) {
  const std::int64_t chunk = 500'000;
  for (const auto fidelity : {CollectiveFidelity::message, CollectiveFidelity::fluid}) {
    const auto broadcast =
        run_call(crowded_machines(fidelity), 2 * chunk,
                 [](Communicator& c, auto buffers, auto streams) { c.broadcast(buffers, 0, streams); });
    const Nanoseconds step_ns = step_of_copies_ns(crowded_machines(fidelity), chunk);
    EXPECT_EQ(duration_ns(broadcast.front()), 6 * step_ns);
  }
}

std::shared_ptr<Topology> measured_cpu() {
  auto topology = make_cpu(device_model("cpu", 2, 0));
  topology->facts().collectives.push_back({.operation = "all_reduce", .devices = 2, .bytes = 1000, .time_s = 10e-6});
  topology->facts().collectives.push_back(
      {.operation = "all_reduce", .devices = 2, .bytes = 100'000, .time_s = 1000e-6});
  return topology;
}

TEST(SimCollective, MeasuredTimesLeadInsideAndBeyondTheirRange) {
  const auto time = [](std::int64_t bytes) { return all_reduce_ns(cpu_worker(measured_cpu(), 2), bytes); };
  EXPECT_EQ(time(1000), 10'000);
  EXPECT_EQ(time(100), 10'000);  // the floor
  EXPECT_EQ(time(10'000), 100'000);
  EXPECT_EQ(time(100'000), 1'000'000);
  EXPECT_EQ(time(400'000), 4'000'000);
}

// All took that long together, sharing what they shared: the core is not charged for each of them again.
TEST(SimCollective, AMeasuredTimeHoldsTheSharingOfItsNode) {
  auto topology = make_cpu(device_model("cpu", 1, 0));
  topology->facts().collectives.push_back({.operation = "all_reduce", .devices = 4, .bytes = 1000, .time_s = 10e-6});
  EXPECT_EQ(all_reduce_ns(cpu_worker(topology, 4), 1000), 10'000);
}

TEST(SimCollective, LeavingTheMeasuredRangeIsNoted) {
  const auto notes = [](int devices, std::int64_t bytes) {
    return simulate(cpu_worker(measured_cpu(), devices),
                    [&](Worker& worker) {
                      std::vector<Tensor> buffers;
                      std::vector<Stream*> streams;
                      std::vector<DeviceId> ids;
                      for (Device* device : worker.devices()) {
                        ids.push_back(device->id());
                        buffers.push_back(device->allocate(DType::u8, {bytes}));
                        streams.push_back(&device->compute_stream());
                      }
                      for (int i = 0; i < 2; ++i) worker.communicator(ids).all_reduce(buffers, Reduction::sum, streams);
                    })
        .notes;
  };
  EXPECT_THAT(notes(2, 5000), testing::IsEmpty());
  EXPECT_THAT(notes(2, 500'000),
              testing::ElementsAre("extrapolated: all_reduce on 2 devices outside the measured sizes"));
  EXPECT_THAT(notes(3, 5000), testing::ElementsAre("extrapolated: all_reduce was not measured on 3 devices"));
}

TEST(SimCollective, SendsMeetReceivesInOrder) {
  EngineOptions options = gpu_workers(make_star(), 2);
  options.values = ValueMode::real;
  const Timeline timeline = simulate(options, [](Worker& worker) {
    Communicator& communicator = worker.communicator(gpus_of(2));
    Device& gpu = *worker.devices()[0];
    for (int i = 0; i < 3; ++i) {
      const Tensor tensor = gpu.allocate(DType::f32, {25'000});
      if (worker.index() == 0) {
        gpu.compute_stream().launch(op::fill(tensor, i));
        communicator.send(tensor, 1, gpu.compute_stream());
      } else {
        communicator.receive(tensor, 0, gpu.compute_stream());
        gpu.synchronize();
        EXPECT_EQ(tensor.values<float>()[24'999], static_cast<float>(i));
      }
    }
  });
  const auto records = records_of(timeline, RecordKind::collective);
  ASSERT_EQ(records.size(), 6u);
  EXPECT_EQ(records.back().end_ns, 3 * (4000 + 10'000 + 100));  // 100 ns to fill each
}

}  // namespace
}  // namespace tandem
