// Time of ops, copies and waiting on simulated devices, against closed forms.
#include "engine/layer_ops.h"
#include "tests/engine/sim_support.h"

namespace tandem {
namespace {

TEST(SimDevice, AnOpTakesTheLargerOfItsArithmeticAndItsMemoryTraffic) {
  const Timeline timeline = simulate(gpu_workers(make_star(), 1), [](Worker& worker) {
    Stream& stream = worker.devices()[0]->compute_stream();
    stream.launch(cost_only(1e9, 1));  // 1 ms of arithmetic
    stream.launch(cost_only(1, 2e9));  // 2 ms of memory
    stream.launch(cost_only(100e3));   // 100 ns
    stream.synchronize();
  });
  const auto ops = records_of(timeline, RecordKind::op);
  ASSERT_EQ(ops.size(), 3u);
  EXPECT_EQ(duration_ns(ops[0]), 1'000'000);
  EXPECT_EQ(duration_ns(ops[1]), 2'000'000);
  EXPECT_EQ(duration_ns(ops[2]), 100);
  EXPECT_EQ(ops[1].start_ns, ops[0].end_ns);
}

TEST(SimDevice, ManyShortOpsAddUpExactly) {
  const Timeline timeline = simulate(gpu_workers(make_star(), 1), [](Worker& worker) {
    Stream& stream = worker.devices()[0]->compute_stream();
    stream.launch(cost_only(3600e12));  // an hour first: the clock has less room for nanoseconds then
    for (int i = 0; i < 1000; ++i) stream.launch(cost_only(100e3));
    stream.synchronize();
  });
  const auto ops = records_of(timeline, RecordKind::op);
  EXPECT_EQ(ops.back().end_ns, 3'600'000'000'000 + 100'000);
  EXPECT_EQ(duration_ns(ops[500]), 100);
}

TEST(SimDevice, TheHostPaysForEveryLaunchAndTheDeviceForEveryOp) {
  StarOptions star;
  star.gpu.launch_overhead_s = vendor(3e-6);
  star.gpu.op_overhead_s = vendor(1e-6);
  star.gpu.synchronize_s = vendor(5e-6);
  Nanoseconds after = 0;
  const Timeline timeline = simulate(gpu_workers(make_star(star), 1), [&](Worker& worker) {
    Stream& stream = worker.devices()[0]->compute_stream();
    stream.launch(cost_only(1e6));  // issued at 3 us, 1 us of overhead and 1 us of work
    stream.launch(cost_only(1e6));  // issued at 6 us: the device was idle for 1 us
    stream.synchronize();
    after = worker.now();
  });
  const auto ops = records_of(timeline, RecordKind::op);
  EXPECT_EQ(ops[0].start_ns, 3000);
  EXPECT_EQ(ops[0].end_ns, 5000);
  EXPECT_EQ(ops[1].start_ns, 6000);
  EXPECT_EQ(ops[1].end_ns, 8000);
  EXPECT_EQ(after, 8000 + 5000);
}

TEST(SimDevice, OpsOfGraphsCostWhatTheModelSaysOfThem) {
  StarOptions star;
  star.gpu.launch_overhead_s = vendor(3e-6);
  star.gpu.op_overhead_s = vendor(1e-6);
  star.gpu.graph_launch_overhead_s = vendor(0.5e-6);
  star.gpu.graph_op_overhead_s = vendor(0.2e-6);
  EngineOptions options = gpu_workers(make_star(star), 1);
  options.graphs = true;
  const auto launch_two = [](Worker& worker) {
    Stream& stream = worker.devices()[0]->compute_stream();
    for (int i = 0; i < 2; ++i) stream.launch(op::fill(stream.device().allocate(DType::f32, {250'000}), 0));  // 1 us
    stream.synchronize();
  };
  const Timeline with_graphs = simulate(options, launch_two);
  EXPECT_TRUE(with_graphs.notes.empty());
  const auto ops = records_of(with_graphs, RecordKind::op);
  EXPECT_EQ(ops[0].start_ns, 500);
  EXPECT_EQ(ops[0].end_ns, 1700);
  EXPECT_EQ(ops[1].start_ns, 1700) << "issued at 1 us";
  EXPECT_EQ(ops[1].end_ns, 2900);
  options.topology = make_star({.gpu = [&] {
    DeviceModel unknown = star.gpu;
    unknown.graph_launch_overhead_s = unknown.graph_op_overhead_s = {};
    return unknown;
  }()});
  const Timeline without = simulate(options, launch_two);
  EXPECT_EQ(records_of(without, RecordKind::op)[1].end_ns, 8000);
  EXPECT_THAT(without.notes,
              testing::ElementsAre(testing::HasSubstr("graphs: 'test GPU' does not say what ops of graphs cost")));
}

TEST(SimDevice, OpsBesideACollectiveTakeAsMuchLongerAsTheModelSays) {
  StarOptions star;
  star.gpu.collective_slowdown = vendor(1.25);
  const Timeline timeline = simulate(gpu_workers(make_star(star), 2), [](Worker& worker) {
    Device& gpu = *worker.devices()[0];
    const Tensor gradient = gpu.allocate(DType::f32, {25'000'000});  // 10 ms and more on its links
    Stream* const communication = &gpu.stream(kCommunicationStream);
    const std::vector<DeviceId> ids = {{"worker", 0, DeviceType::gpu, 0}, {"worker", 1, DeviceType::gpu, 0}};
    worker.communicator(ids).all_reduce(std::span(&gradient, 1), Reduction::sum, std::span(&communication, 1));
    gpu.compute_stream().launch(cost_only(1e9));
    gpu.synchronize();
    gpu.compute_stream().launch(cost_only(1e9));
    gpu.synchronize();
  });
  const auto ops = records_of(timeline, RecordKind::op);
  ASSERT_EQ(ops.size(), 4U);
  EXPECT_EQ(duration_ns(ops[0]), 1'250'000);
  EXPECT_EQ(duration_ns(ops[3]), 1'000'000);
}

TEST(SimDevice, OpsBesideAGatherOfCopyEnginesTakeTheirOwnTime) {
  StarOptions star;
  star.gpu.collective_slowdown = vendor(1.25);
  const auto op_ns = [&](bool by_copy_engines, bool gathers) {
    const Timeline timeline = simulate(gpu_workers(make_star(star), 2), [&](Worker& worker) {
      Device& gpu = *worker.devices()[0];
      const Tensor part = gpu.allocate(DType::f32, {12'500'000});
      const Tensor whole = gpu.allocate(DType::f32, {25'000'000});  // 5 ms and more on its links
      Stream* const communication = &gpu.stream(kCommunicationStream);
      const std::vector<DeviceId> ids = {{"worker", 0, DeviceType::gpu, 0}, {"worker", 1, DeviceType::gpu, 0}};
      Communicator& communicator = worker.communicator(ids);
      if (by_copy_engines) communicator.set_gathers_by_copy_engines();
      const std::span streams(&communication, 1);
      if (gathers) {
        communicator.all_gather(std::span(&whole, 1), std::span(&part, 1), streams);
      } else {
        communicator.reduce_scatter(std::span(&part, 1), std::span(&whole, 1), Reduction::sum, streams);
      }
      gpu.compute_stream().launch(cost_only(1e9));
      gpu.synchronize();
    });
    return duration_ns(records_of(timeline, RecordKind::op).front());
  };
  EXPECT_EQ(op_ns(false, true), 1'250'000);
  EXPECT_EQ(op_ns(true, true), 1'000'000);
  EXPECT_EQ(op_ns(true, false), 1'250'000) << "sums need multiprocessors";
}

TEST(SimDevice, SynchronizingAnIdleStreamCostsNothingAndNowPaysTheDebt) {
  StarOptions star;
  star.gpu.launch_overhead_s = vendor(3e-6);
  star.gpu.synchronize_s = vendor(5e-6);
  simulate(gpu_workers(make_star(star), 1), [&](Worker& worker) {
    Stream& stream = worker.devices()[0]->compute_stream();
    stream.synchronize();
    EXPECT_EQ(worker.now(), 0);
    stream.launch(cost_only(0));
    EXPECT_EQ(worker.now(), 3000);
    stream.synchronize();
    EXPECT_EQ(worker.now(), 3000);  // the op was over when the host came
  });
}

TEST(SimDevice, StreamsOfOneGpuShareItAndEventsOrderThem) {
  simulate(gpu_workers(make_star(), 1), [](Worker& worker) {
    Device& gpu = *worker.devices()[0];
    gpu.stream(0).launch(cost_only(1e9));
    gpu.stream(1).launch(cost_only(1e9));
    gpu.synchronize();
    EXPECT_EQ(worker.now(), 2'000'000);  // both at half rate
    gpu.stream(0).launch(cost_only(1e9));
    const Event event = gpu.stream(0).record();
    EXPECT_FALSE(event.is_complete());
    gpu.stream(1).wait(event);
    gpu.stream(1).launch(cost_only(1e9));
    gpu.stream(1).synchronize();
    EXPECT_TRUE(event.is_complete());
    EXPECT_EQ(worker.now(), 4'000'000);
  });
}

TEST(SimDevice, MoreBusyDevicesThanCoresShareThemFairly) {
  const auto time_of = [](int devices) {
    Nanoseconds end = 0;
    simulate(cpu_worker(make_cpu(device_model("cpu", 4, 0)), devices), [&](Worker& worker) {
      for (Device* device : worker.devices()) device->compute_stream().launch(cost_only(1e9));
      for (Device* device : worker.devices()) device->synchronize();
      end = worker.now();
    });
    return end;
  };
  EXPECT_EQ(time_of(1), 1'000'000);  // figures are per core
  EXPECT_EQ(time_of(4), 1'000'000);
  EXPECT_EQ(time_of(8), 2'000'000);
  EXPECT_EQ(time_of(6), 1'500'000);
}

TEST(SimDevice, LogicalDevicesOfOneGpuShareIt) {
  simulate(gpu_workers(make_star(), 1, 2), [](Worker& worker) {
    for (Device* device : worker.devices()) device->compute_stream().launch(cost_only(1e9));
    for (Device* device : worker.devices()) device->synchronize();
    EXPECT_EQ(worker.now(), 2'000'000);
  });
}

// Overheads like rates: of the measurement with as many devices on the GPU, and of the GPU they share.
TEST(SimDevice, OverheadsAreThoseOfAsManyDevices) {
  StarOptions star;
  star.gpu.op_overhead_s = vendor(10e-6);
  const std::vector<RateSample> memory = {{.bytes = 1, .bytes_per_s = 1e12}};
  star.gpu.rates = {{.concurrency = 1, .dtype = DType::f32, .gemm = {}, .memory = memory, .copy = {}},
                    {.concurrency = 2,
                     .dtype = DType::f32,
                     .op_overhead_s = 7e-6,
                     .launch_overhead_s = 1e-6,
                     .gemm = {},
                     .memory = memory,
                     .copy = {}}};
  const auto time_of = [&](int devices) {
    Nanoseconds end = 0;
    simulate(gpu_workers(make_star(star), 1, devices), [&](Worker& worker) {
      worker.tasks().run_concurrently(devices, [&](int d) {
        Device& device = *worker.devices()[static_cast<std::size_t>(d)];
        device.compute_stream().launch(cost_only(0));
        device.synchronize();
      });
      end = worker.now();
    });
    return end;
  };
  EXPECT_EQ(time_of(1), 10'000);
  EXPECT_EQ(time_of(2), 1000 + 2 * 7000);
}

// What one device leaves of a GPU the other may have, but it cannot have more than it can use.
TEST(SimDevice, OneOfSeveralIsNoFasterThanAlone) {
  const auto memory = [](double bytes_per_s) {
    return std::vector<RateSample>{{.bytes = 1, .bytes_per_s = bytes_per_s}};
  };
  StarOptions star;
  star.gpu.rates = {
      {.concurrency = 1, .dtype = DType::f32, .gemm = {}, .memory = memory(1e12), .copy = memory(1e12)},
      {.concurrency = 2, .dtype = DType::f32, .gemm = {}, .memory = memory(1.5e12), .copy = memory(3e12)}};
  star.gpu.copy_engines = 0;
  simulate(gpu_workers(make_star(star), 1, 2), [](Worker& worker) {
    const auto add = [&](std::size_t d) { worker.devices()[d]->compute_stream().launch(cost_only(0, 3e6)); };
    auto took_ns = [&, last = worker.now()]() mutable {
      for (Device* device : worker.devices()) device->synchronize();
      return worker.now() - std::exchange(last, worker.now());
    };
    add(0);
    EXPECT_EQ(took_ns(), 3000) << "as alone";
    add(0);
    add(1);
    EXPECT_EQ(took_ns(), 4000) << "6 MB at what the two reach together";
    Device& device = *worker.devices()[0];
    device.compute_stream().copy(device.allocate(DType::u8, {3'000'000}), device.allocate(DType::u8, {3'000'000}));
    EXPECT_EQ(took_ns(), 3000);
  });
}

// A byte is a byte: types of which only products were measured have the memory rate of the others.
TEST(SimDevice, ElementWiseWorkOfATypeWithoutACurveHasAnothers) {
  StarOptions star;
  star.gpu.rates = {
      {.concurrency = 1, .dtype = DType::f32, .gemm = {}, .memory = {{.bytes = 1, .bytes_per_s = 2e12}}, .copy = {}},
      {.concurrency = 1, .dtype = DType::bf16, .gemm = {{8, 8, 8, 1e12}}, .memory = {}, .copy = {}}};
  simulate(gpu_workers(make_star(star), 1), [](Worker& worker) {
    Device& gpu = *worker.devices()[0];
    const Tensor tensor = gpu.allocate(DType::bf16, {1'000'000});
    gpu.compute_stream().launch(op::fill(tensor, 0));
    gpu.synchronize();
    EXPECT_EQ(worker.now(), 1000);  // 2 MB at 2 TB/s
  });
}

// At the rate that was measured for one of them, and by their shape where the model of a GPU's kernels decides.
TEST(SimDevice, BatchedProductsTakeTheTimeOfTheirShape) {
  StarOptions star;
  star.gpu.rates = {{.concurrency = 1, .dtype = DType::f32, .gemm = {{100, 100, 100, 1e12}}, .memory = {}, .copy = {}}};
  const auto took = [&] {
    std::vector<Nanoseconds> times;
    simulate(gpu_workers(make_star(star), 1), [&times](Worker& worker) {
      Device& gpu = *worker.devices()[0];
      const Tensor all = gpu.allocate(DType::f32, {50, 100, 100});
      const Tensor one = all.view(0, {100, 100});
      Op product = op::gemm(one, one, one);
      product.cost.flops *= 50;
      product.cost.bytes *= 50;
      product.cost.shape = ProductShape{.m = 100, .n = 100, .k = 100, .count = 50};
      for (Op op : {op::batched_gemm(all, all, all), product}) {
        const Nanoseconds before = worker.now();
        gpu.compute_stream().launch(std::move(op));
        gpu.synchronize();
        times.push_back(worker.now() - before);
      }
    });
    return times;
  };
  EXPECT_THAT(took(), testing::Each(100'000));  // 50 times 2 Mflop at 1 Tflop/s
  star.gpu.architecture = "sm_80";
  star.gpu.multiprocessors = 64;
  star.gpu.rates = {};
  const std::vector<Nanoseconds> by_shape = took();
  EXPECT_NEAR(static_cast<double>(by_shape[0]), static_cast<double>(by_shape[1]), 1);  // a nanosecond of rounding
  EXPECT_GT(by_shape[0], 0);
}

TEST(SimDevice, ACopyTakesItsRoutesLatencyAndBandwidth) {
  const Timeline timeline = simulate(gpu_workers(make_star(), 1), [](Worker& worker) {
    Device& gpu = *worker.devices()[0];
    const Tensor from = worker.cpu().allocate(DType::f32, {25'000'000});  // 100 MB
    const Tensor to = gpu.allocate(DType::f32, {25'000'000});
    EXPECT_FALSE(to.has_values());
    gpu.stream(kInputStream).copy(to, from);
    gpu.synchronize();
  });
  const auto copies = records_of(timeline, RecordKind::copy);
  ASSERT_EQ(copies.size(), 1u);
  EXPECT_EQ(copies[0].bytes, 100e6);
  EXPECT_EQ(duration_ns(copies[0]), 2 * 2000 + 10'000'000);  // two links of 2 us, 10 GB/s
}

TEST(SimDevice, FlowsIntoOnePortShareIt) {
  const int senders = 4;
  const Timeline timeline =
      simulate(gpu_workers(make_star({.workers = senders + 1}), senders + 1), [&](Worker& worker) {
        if (worker.index() != 0) return;
        for (int i = 1; i <= senders; ++i) {
          Device& gpu = worker.device(gpu_of(i));
          gpu.compute_stream().copy(worker.devices()[0]->allocate(DType::u8, {10'000'000}),
                                    gpu.allocate(DType::u8, {10'000'000}));
        }
      });
  for (const Record& copy : records_of(timeline, RecordKind::copy)) {
    EXPECT_EQ(copy.end_ns, 4000 + senders * 1'000'000) << "worker " << copy.worker;
  }
}

TEST(SimDevice, OppositeDirectionsOfADuplexLinkDoNotShare) {
  simulate(gpu_workers(make_star(), 2), [](Worker& worker) {
    if (worker.index() != 0) return;
    Device& here = *worker.devices()[0];
    Device& there = worker.device(gpu_of(1));
    const Tensor a = here.allocate(DType::u8, {10'000'000});
    const Tensor b = there.allocate(DType::u8, {10'000'000});
    here.compute_stream().copy(b, a);
    there.compute_stream().copy(a, b);
    here.synchronize();
    there.synchronize();
    EXPECT_EQ(worker.now(), 4000 + 1'000'000);
  });
}

TEST(SimDevice, ACopyInsideANodeReadsAndWritesItsMemory) {
  simulate(cpu_worker(make_cpu(device_model("cpu", 2, 0)), 2), [](Worker& worker) {
    Device& first = *worker.devices()[0];
    first.compute_stream().copy(worker.devices()[1]->allocate(DType::u8, {1'000'000'000}),
                                first.allocate(DType::u8, {1'000'000'000}));
    first.synchronize();
    EXPECT_EQ(worker.now(), 2'000'000);
  });
}

TEST(SimDevice, MemoryBeyondTheDeviceIsRefusedAndReturned) {
  StarOptions star;
  star.gpu.memory_bytes = vendor(1000);
  simulate(gpu_workers(make_star(star), 1), [](Worker& worker) {
    Device& gpu = *worker.devices()[0];
    Tensor first = gpu.allocate(DType::u8, {600});
    try {
      gpu.allocate(DType::u8, {500});
      FAIL() << "1100 bytes fit into 1000";
    } catch (const RunError& error) {
      EXPECT_STREQ(error.what(),
                   "/job:worker/replica:0/task:0/device:GPU:0: out of memory: requested 500 B for u8[500], in use "
                   "600 B of 1.000 kB (test GPU)");
    }
    first = {};
    EXPECT_EQ(gpu.memory_in_use_bytes(), 0);
    EXPECT_EQ(gpu.allocate(DType::u8, {1000}).size_bytes(), 1000u);
    EXPECT_EQ(gpu.memory_peak_bytes(), 1000);
  });
}

TEST(SimDevice, AnElementTypeWithoutARateIsRefusedByName) {
  EXPECT_THAT(
      [] {
        simulate(gpu_workers(make_star(), 1),
                 [](Worker& worker) { worker.devices()[0]->compute_stream().launch(cost_only(1e9, 0, DType::bf16)); });
      },
      testing::ThrowsMessage<RunError>(testing::HasSubstr("device model 'test GPU' has no bf16 rate")));
}

TEST(SimDevice, EffectsHappenWhenTheOperationEnds) {
  EngineOptions options = gpu_workers(make_star(), 1);
  options.values = ValueMode::real;
  simulate(options, [](Worker& worker) {
    Device& gpu = *worker.devices()[0];
    Tensor here = gpu.allocate(DType::f32, {4});
    Tensor host = worker.cpu().allocate(DType::f32, {4});
    std::fill(host.values<float>().begin(), host.values<float>().end(), -1.0f);
    gpu.compute_stream().launch(op::fill(here, 7));
    gpu.compute_stream().copy(host, here);
    worker.now();
    EXPECT_EQ(host.values<float>()[0], -1);  // the copy has not ended
    gpu.synchronize();
    EXPECT_EQ(host.values<float>()[3], 7);
  });
}

}  // namespace
}  // namespace tandem
