// What the threads and the own kernels of a processor cost in a simulation, against closed forms.
#include "tests/engine/sim_support.h"

namespace tandem {
namespace {

DeviceModel sleepy_cpu() {
  DeviceModel model = device_model("cpu", 4, 0);
  model.wake_up_s = vendor(50e-6);
  model.hand_over_s = vendor(5e-6);
  return model;
}

TEST(SimHostTime, AStreamThatSleepsTakesTimeToWakeUp) {
  const Timeline timeline = simulate(cpu_worker(make_cpu(sleepy_cpu()), 1), [](Worker& worker) {
    Stream& stream = worker.devices()[0]->compute_stream();
    stream.launch(cost_only(100e6));  // 100 us
    stream.launch(cost_only(100e6));  // behind it: the stream is awake
    stream.synchronize();
    stream.launch(cost_only(100e6));  // it has given its core to the program
    stream.synchronize();
    worker.devices()[0]->stream(1).launch(cost_only(100e6));
    worker.devices()[0]->stream(1).synchronize();
    stream.launch(cost_only(100e6));  // now it sleeps
    stream.synchronize();
  });
  const auto ops = records_of(timeline, RecordKind::op);
  ASSERT_EQ(ops.size(), 5U);
  EXPECT_EQ(ops[0].start_ns, 50'000 + 50'000) << "the program's own thread wakes up first";
  EXPECT_EQ(ops[1].start_ns, 200'000);
  EXPECT_EQ(ops[2].start_ns, 300'000 + 5'000 + 50'000);
  EXPECT_EQ(ops[3].start_ns, 455'000 + 5'000 + 50'000) << "a stream that was never used";
  EXPECT_EQ(ops[4].start_ns, 610'000 + 5'000 + 50'000);
}

TEST(SimHostTime, AStreamFallsAsleepOverALongWaitForAnother) {
  const auto start_after = [](double wait_s) {
    const Timeline timeline = simulate(cpu_worker(make_cpu(sleepy_cpu()), 2), [&](Worker& worker) {
      Stream& first = worker.devices()[0]->compute_stream();
      Stream& second = worker.devices()[1]->compute_stream();
      first.launch(cost_only(wait_s * kFlopsPerS));
      second.wait(first.record());
      second.launch(cost_only(1e6));
      second.synchronize();
    });
    const auto ops = records_of(timeline, RecordKind::op);
    return ops[1].start_ns - ops[0].end_ns;
  };
  EXPECT_EQ(start_after(10e-6), 0);
  EXPECT_EQ(start_after(200e-6), 5'000) << "it takes over the core of the first";
}

TEST(SimHostTime, ReplicasAfterTheFirstBeginInTurnOnThreadsThatSleep) {
  const auto starts = [](const DeviceModel& model) {
    std::vector<Nanoseconds> begun(3);
    simulate(cpu_worker(make_cpu(model), 3), [&](Worker& worker) {
      worker.tasks().run_in_turn(3, [&](int i) {
        begun[static_cast<std::size_t>(i)] = worker.now();
        Stream& stream = worker.devices()[static_cast<std::size_t>(i)]->compute_stream();
        stream.launch(cost_only(1e9));
        if (i == 0) stream.synchronize();  // the others only issue
      });
    });
    return begun;
  };
  DeviceModel model = device_model("cpu", 4, 0);
  model.launch_overhead_s = vendor(3e-6);
  EXPECT_THAT(starts(model), testing::Each(0));
  model.wake_up_s = vendor(50e-6);
  EXPECT_THAT(starts(model), testing::ElementsAre(50'000, 103'000, 106'000)) << "the second did not block";
}

TEST(SimHostTime, TakingElementsFromADatasetCostsTheHostTime) {
  const auto time_of = [](const DeviceModel& model) {
    Nanoseconds end = 0;
    simulate(cpu_worker(make_cpu(model), 1), [&](Worker& worker) {
      worker.took_input(100, 1'000'000);
      end = worker.now();
    });
    return end;
  };
  DeviceModel model = device_model("cpu", 4, 0);
  EXPECT_EQ(time_of(model), 0) << "what it costs is not known";
  model.input_element_s = vendor(0.2e-6);
  EXPECT_EQ(time_of(model), 100 * 200 + 2'000) << "its bytes are copied, too";
}

TEST(SimHostTime, KernelsThatWereMeasuredByThemselvesTakeTheirOwnTime) {
  DeviceModel model = device_model("cpu", 1, 0);
  const std::vector<RateSample> memory = {{1000, 10e9}};
  model.rates = {{.concurrency = 1, .dtype = DType::f32, .gemm = {}, .memory = memory, .copy = {}}};
  model.rates.front().kernels["relu"] = {{8000, 1e9}};
  const Timeline timeline = simulate(cpu_worker(make_cpu(model), 1), [](Worker& worker) {
    Device& cpu = *worker.devices()[0];
    const Tensor a = cpu.allocate(DType::f32, {1000});
    cpu.compute_stream().launch(op::relu(a, a));
    cpu.compute_stream().launch(op::scale_add(a, a, 2, 0));
    cpu.synchronize();
  });
  const auto ops = records_of(timeline, RecordKind::op);
  EXPECT_EQ(duration_ns(ops[0]), 8'000);
  EXPECT_EQ(duration_ns(ops[1]), 800);
}

}  // namespace
}  // namespace tandem
