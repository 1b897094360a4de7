// What a run of GPUs records, what that costs, and by which clock.
#include <chrono>
#include <thread>

#include "tests/cuda_emulation/on_gpus.h"

namespace tandem {
namespace {

constexpr int kLaunches = 320;

class GpuRecords : public testing::Test {
 protected:
  void SetUp() override { emulation::start({.gpus = 1}); }
  void TearDown() override { emulation::start(emulation::machine_of_environment()); }
};

Timeline run(RecordLevel records, const Program& program) {
  EngineOptions options;
  options.workers.front() = {.device_type = DeviceType::gpu, .device_count = 1};
  options.records = records;
  return open_engine("cuda", std::move(options))->run(program);
}

// What so many launches take in events, while the GPU has not begun with any.
emulation::EventCounts events_of_launches(RecordLevel records) {
  emulation::EventCounts counts;
  run(records, [&](Worker& worker) {
    Stream& stream = worker.devices()[0]->compute_stream();
    const Tensor tensor = filled(worker, 64, 1)[0];
    stream.synchronize();
    emulation::hang_gpu(0);
    const emulation::EventCounts before = emulation::recorded_events();
    for (int i = 0; i < kLaunches; ++i) stream.launch(op::fill(tensor, i));
    stream.launch(op::host_function("issued", {}, [] {}));
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // all before the function are issued
    counts = emulation::recorded_events();
    counts.timed -= before.timed;
    counts.plain -= before.plain;
    emulation::release_gpus();
    stream.synchronize();
  });
  return counts;
}

TEST_F(GpuRecords, TakeOneEventAnOp) {
  const emulation::EventCounts counts = events_of_launches(RecordLevel::all);
  EXPECT_EQ(counts.timed, kLaunches) << "after each; the first begins at the end of the one before";
  EXPECT_EQ(counts.plain, 1) << "the function waits for it";
}

TEST_F(GpuRecords, OfNoOpsTakeOnePlainEventForManyOps) {
  for (const RecordLevel level : {RecordLevel::collectives, RecordLevel::steps}) {
    const emulation::EventCounts counts = events_of_launches(level);
    EXPECT_EQ(counts.timed, 0);
    EXPECT_EQ(counts.plain, kLaunches / 32 + 1);
  }
}

TEST_F(GpuRecords, HaveOneClockThatFollowsTheHosts) {
  emulation::start({.gpus = 1, .clock_drift = 0.02});
  double host_s = 0;
  const Timeline timeline = run(RecordLevel::all, [&](Worker& worker) {
    Stream& stream = worker.devices()[0]->compute_stream();
    const Tensor tensor = filled(worker, 64, 1)[0];
    stream.synchronize();
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    for (int i = 0; i < 30; ++i) {  // the clocks are compared as soon as the GPU answers promptly
      stream.launch(op::fill(tensor, i));
      stream.synchronize();
      std::this_thread::sleep_for(std::chrono::milliseconds(15));
    }
    emulation::hang_gpu(0);
    stream.launch(op::relu(tensor, tensor));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    host_s = static_cast<double>(worker.now()) * 1e-9;
    emulation::release_gpus();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    stream.synchronize();
  });
  for (const Record& record : timeline.records) {
    if (record.name != "relu") continue;
    EXPECT_NEAR(static_cast<double>(record.end_ns) * 1e-9, host_s, 0.02) << "the drift of 2 s is 0.04 s";
  }
  EXPECT_THAT(timeline.settings.at("record_clock"), testing::StartsWith("times of CUDA events, to about 0.5 us"));
}

}  // namespace
}  // namespace tandem
