// What goes wrong on purpose on GPUs: ops that are held back, workers that are lost.
#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "engine/faults/faults.h"
#include "tests/cuda_emulation/on_gpus.h"

namespace tandem {
namespace {

constexpr double kSpinS = 0.004, kSlowFactor = 4;
constexpr int kOpsOfStep = 5;

class GpuFaults : public testing::TestWithParam<bool> {  // with graphs
 protected:
  void SetUp() override { emulation::start({.gpus = 2}); }
  void TearDown() override { emulation::start(emulation::machine_of_environment()); }

  static Timeline run(int workers, int devices, Faults faults, const Program& program) {
    EngineOptions options;
    options.workers.clear();
    for (int task = 0; task < workers; ++task) {
      options.workers.push_back({.task = task, .device_type = DeviceType::gpu, .device_count = devices});
    }
    options.graphs = GetParam();
    options.faults = std::make_shared<const Faults>(std::move(faults));
    return open_engine("cuda", std::move(options))->run(program);
  }
};
INSTANTIATE_TEST_SUITE_P(Launches, GpuFaults, testing::Bool(),
                         [](const auto& with_graphs) { return with_graphs.param ? "graphs" : "ops"; });

void spin() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(kSpinS);
  while (std::chrono::steady_clock::now() < end) {
  }
}

TEST_P(GpuFaults, ASlowGpuHoldsItsOpsBack) {
  const FaultPeriod second{.first_step = 1, .last_step = 1};
  const Timeline timeline = run(
      1, 2, {.slow_devices = {{.worker = 0, .device = 1, .factor = kSlowFactor, .when = second}}}, [](Worker& worker) {
        const std::vector<Tensor> tensors = filled(worker, 1 << 20, 1);
        for (int step = 0; step < 3; ++step) {
          worker.begin_step(step);
          for (std::size_t i = 0; i < tensors.size(); ++i) {
            Stream& stream = worker.devices()[i]->compute_stream();
            for (int op = 0; op < kOpsOfStep; ++op) {
              stream.launch(op::square_root(tensors[i], tensors[i], 1, 0));
              stream.synchronize();  // each is an op of its own, also with graphs
              stream.launch(op::host_function("spin", {}, spin));
            }
            stream.synchronize();
          }
          worker.cpu().compute_stream().launch(op::host_function("spin", {}, spin));
          worker.cpu().synchronize();
          worker.end_step();
        }
      });
  std::map<std::tuple<std::string, bool, int>, std::vector<double>> seconds;  // by name, whether it is GPU 1, and step
  for (const Record& record : timeline.records) {
    if (record.kind != RecordKind::op) continue;
    const std::string& device = timeline.devices[static_cast<std::size_t>(record.device)].name;
    const double taken_s = static_cast<double>(record.end_ns - record.start_ns) * 1e-9;
    seconds[{std::string(record.name), device.ends_with("GPU:1"), record.step}].push_back(taken_s);
    if (record.name != "spin") continue;
    // By the clock of a GPU, which may differ a little from the host's.
    EXPECT_GE(taken_s, 0.8 * kSpinS * (device.ends_with("GPU:1") && record.step == 1 ? kSlowFactor : 1)) << device;
  }
  // The shortest ones, because other programs only make ops longer.
  for (const char* name : {"spin", "square_root"}) {
    double undisturbed = std::numeric_limits<double>::infinity(), slow = undisturbed;
    for (const auto& [place, all] : seconds) {
      if (std::get<0>(place) != name) continue;
      double& shortest = std::get<1>(place) && std::get<2>(place) == 1 ? slow : undisturbed;
      shortest = std::min(shortest, *std::ranges::min_element(all));
    }
    EXPECT_GT(slow, kSlowFactor / 2 * undisturbed) << name;
  }
}

TEST_P(GpuFaults, ALostWorkerEndsTheRunWithItsError) {
  for (const LostWorker lost : {LostWorker{.worker = 1, .step = 2}, LostWorker{.worker = 1, .at_s = 0.02}}) {
    const auto work = [&] {
      run(2, 1, {.lost_workers = {lost}}, [](Worker& worker) {
        std::vector<DeviceId> all = ids_of(worker);
        all.push_back(all.front());
        all[0].task = 0;
        all[1].task = 1;
        const std::vector<Tensor> tensors = filled(worker, 16, 1);
        for (int step = 0; step < 100'000; ++step) {
          worker.begin_step(step);
          worker.devices()[0]->compute_stream().launch(op::scale_add(tensors[0], tensors[0], 0.5, 0.5));
          worker.communicator(all).all_reduce(tensors, Reduction::sum, compute_streams(worker));
          worker.devices()[0]->synchronize();
          worker.end_step();
        }
      });
    };
    EXPECT_THAT(work, testing::ThrowsMessage<UnavailableError>(testing::HasSubstr("/job:worker/task:1 was lost")));
  }
}

}  // namespace
}  // namespace tandem
