// What goes wrong on purpose, on simulated and on real devices.
#include "engine/faults/faults.h"

#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <numeric>
#include <random>

#include "engine/engine_info.h"
#include "tests/engine/run_on_cpu.h"
#include "tests/engine/sim_support.h"

namespace tandem {
namespace {

using testing::HasSubstr;

constexpr double kOpFlops = 1e9;  // 1 ms
constexpr double kSpinS = 2e-3;
constexpr Nanoseconds kOpNs = 1'000'000;
constexpr double kTransferBytes = 10e6;  // 1 ms of a link

EngineOptions with(EngineOptions options, Faults faults) {
  options.faults = std::make_shared<const Faults>(std::move(faults));
  return options;
}

std::vector<Nanoseconds> durations(const Timeline& timeline, RecordKind kind, int worker) {
  std::vector<Nanoseconds> found;
  for (const Record& record : timeline.records) {
    if (record.kind == kind && record.worker == worker) found.push_back(duration_ns(record));
  }
  return found;
}

void ops_in_steps(Worker& worker, int steps, int ops = 1) {
  for (int step = 0; step < steps; ++step) {
    worker.begin_step(step);
    for (int i = 0; i < ops; ++i) worker.devices()[0]->compute_stream().launch(cost_only(kOpFlops));
    worker.end_step();
  }
}

TEST(SimFaults, ASlowDeviceTakesItsFactorLonger) {
  const Faults faults{.slow_devices = {{.worker = 1, .device = 0, .factor = 2.5}}};
  const Timeline timeline =
      simulate(with(gpu_workers(make_star(), 2), faults), [](Worker& worker) { ops_in_steps(worker, 2); });
  EXPECT_THAT(durations(timeline, RecordKind::op, 0), testing::Each(kOpNs));
  EXPECT_THAT(durations(timeline, RecordKind::op, 1), testing::Each(5 * kOpNs / 2));
}

TEST(SimFaults, PeriodsAreOfStepsOrOfDates) {
  const Faults of_steps{.slow_devices = {{.worker = 0, .factor = 3, .when = {.first_step = 1, .last_step = 2}}}};
  EXPECT_THAT(
      durations(simulate(with(gpu_workers(make_star(), 2), of_steps), [](Worker& worker) { ops_in_steps(worker, 4); }),
                RecordKind::op, 0),
      testing::ElementsAre(kOpNs, 3 * kOpNs, 3 * kOpNs, kOpNs));
  // Ops begin at 0, 1, 2 and 5 ms.
  const Faults of_dates{.slow_devices = {{.worker = 0, .factor = 3, .when = {.from_s = 2e-3, .to_s = 5e-3}}}};
  EXPECT_THAT(durations(simulate(with(gpu_workers(make_star(), 2), of_dates),
                                 [](Worker& worker) { ops_in_steps(worker, 1, 4); }),
                        RecordKind::op, 0),
              testing::ElementsAre(kOpNs, kOpNs, 3 * kOpNs, kOpNs));
}

// Transfers 10 MB, 1 ms of a link, from the GPU of one worker to that of the other.
Timeline transfer(const Faults& faults) {
  return simulate(with(gpu_workers(make_star(), 2), faults), [](Worker& worker) {
    worker.begin_step(0);
    if (worker.index() == 0) {
      Device& here = *worker.devices()[0];
      Device& there = worker.device({"worker", 1, DeviceType::gpu, 0});
      const auto elements = static_cast<std::int64_t>(kTransferBytes / 4);
      const Tensor from = here.allocate(DType::f32, {elements}), to = there.allocate(DType::f32, {elements});
      here.compute_stream().copy(to, from);
    }
    worker.end_step();
  });
}

Nanoseconds transfer_ns(const Faults& faults) {
  return duration_ns(records_of(transfer(faults), RecordKind::copy).at(0));
}

// Link 3 is that of the second worker's GPU.
TEST(SimFaults, ALinkCarriesItsShareMeanwhile) {
  const Nanoseconds own = transfer_ns({});
  EXPECT_EQ(own, 1'000'000 + 2 * 2'000) << "two links of 2 us";
  EXPECT_EQ(transfer_ns({.slow_links = {{.links = {3}, .factor = 4}}}), own + 3'000'000);
  EXPECT_EQ(transfer_ns({.slow_links = {{.links = {2}, .factor = 4}}}), own) << "not on the way";
  // From 0.404 ms on, 0.4 ms of the bytes have passed.
  EXPECT_EQ(transfer_ns({.slow_links = {{.links = {3}, .factor = 2, .when = {.from_s = 404e-6}}}}), own + 600'000);
  // For 0.2 ms in the middle.
  EXPECT_EQ(transfer_ns({.slow_links = {{.links = {3}, .factor = 2, .when = {.from_s = 404e-6, .to_s = 604e-6}}}}),
            own + 100'000);
  EXPECT_EQ(transfer_ns({.slow_links = {{.links = {3}, .factor = 2, .when = {.from_s = 1}}}}), own);
  EXPECT_EQ(transfer_ns({.slow_links = {{.links = {3}, .factor = 2}, {.links = {3, 2}, .factor = 3}}}), own + 5'000'000)
      << "factors multiply";
}

TEST(SimFaults, JitterHasItsMeanAndVariationAndIsOfItsSeed) {
  const auto times = [](std::uint64_t seed) {
    const Faults faults{.jitter = {{.on = Jitter::On::compute, .variation = 0.2, .seed = seed}}};
    return durations(
        simulate(with(gpu_workers(make_star(), 2), faults), [](Worker& worker) { ops_in_steps(worker, 1, 4000); }),
        RecordKind::op, 0);
  };
  const std::vector<Nanoseconds> one = times(1);
  EXPECT_EQ(one, times(1));
  EXPECT_NE(one, times(2));
  const double mean =
      static_cast<double>(std::accumulate(one.begin(), one.end(), Nanoseconds{0})) / static_cast<double>(one.size());
  double squares = 0;
  for (const Nanoseconds time : one) squares += std::pow(static_cast<double>(time) - mean, 2);
  EXPECT_NEAR(mean / kOpNs, 1, 0.012);
  EXPECT_NEAR(std::sqrt(squares / static_cast<double>(one.size())) / mean, 0.2, 0.012);
}

TEST(SimFaults, TransfersAndInputVary) {
  const Faults network{.jitter = {{.on = Jitter::On::network, .variation = 0.3}}};
  EXPECT_NE(transfer_ns(network), transfer_ns({}));
  EXPECT_EQ(transfer_ns(network), transfer_ns(network));
  const Faults input{.jitter = {{.on = Jitter::On::input, .variation = 0.3}}};
  EXPECT_EQ(transfer_ns(input), transfer_ns({}));
}

TEST(SimFaults, ALostWorkerEndsTheRunThen) {
  const auto error_of = [](LostWorker lost, int* steps) {
    try {
      simulate(with(gpu_workers(make_star(), 2), {.lost_workers = {lost}}), [steps](Worker& worker) {
        for (int step = 0; step < 10; ++step) {
          worker.begin_step(step);
          worker.devices()[0]->compute_stream().launch(cost_only(kOpFlops));
          worker.end_step();
          if (worker.index() == 0) *steps = step + 1;
        }
      });
    } catch (const UnavailableError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  int steps = 0;
  EXPECT_THAT(error_of({.worker = 1, .at_s = 4.5e-3}, &steps),
              HasSubstr("/job:worker/task:1 was lost 0.0045 s into the run"));
  EXPECT_EQ(steps, 4);
  EXPECT_THAT(error_of({.worker = 1, .step = 3}, &steps), HasSubstr("/job:worker/task:1 was lost before step 3"));
  EXPECT_EQ(steps, 3);
  EXPECT_EQ(error_of({.worker = 1, .at_s = 20}, &steps), "") << "the run has ended before";
}

// Nothing that is still to go wrong keeps a deadlock from being found.
TEST(SimFaults, LeaveADeadlockWhatItIs) {
  const Faults faults{.slow_links = {{.links = {3}, .factor = 2, .when = {.from_s = 1e6}}}};
  EXPECT_THROW(simulate(with(gpu_workers(make_star(), 2), faults),
                        [](Worker& worker) {
                          worker.begin_step(0);
                          if (worker.index() == 0) {
                            Device& gpu = *worker.devices()[0];
                            const std::vector<Tensor> buffers = {gpu.allocate(DType::f32, {16})};
                            const std::vector<Stream*> streams = {&gpu.compute_stream()};
                            worker.communicator(gpus_of(2)).all_reduce(buffers, Reduction::sum, streams);
                          }
                          worker.end_step();
                        }),
               DeadlockError);
}

// Workers that faults leave alike still represent one another, and all times are those of a run of every worker.
TEST(SimFaults, SymmetryChangesNoTime) {
  constexpr int kMany = 12;
  std::mt19937 random(5);
  const auto draw = [&](unsigned most) { return static_cast<int>(random() % most); };
  const Program program = [](Worker& worker) {
    Device& gpu = *worker.devices()[0];
    const std::vector<Tensor> buffers = {gpu.allocate(DType::f32, {1'000'000})};
    const std::vector<Stream*> streams = {&gpu.compute_stream()};
    for (int step = 0; step < 4; ++step) {
      worker.begin_step(step);
      gpu.compute_stream().launch(cost_only(kOpFlops));
      worker.communicator(gpus_of(kMany)).all_reduce(buffers, Reduction::sum, streams);
      worker.end_step();
    }
  };
  const auto run = [&](const EngineOptions& options) {
    const auto engine = open_sim_engine(options);
    for (;;) {
      try {
        return engine->run(program);
      } catch (const RunAgain&) {
      }
    }
  };
  const auto ends_of_first = [](const Timeline& timeline) {
    std::vector<Nanoseconds> ends;
    for (const Record& record : timeline.records) {
      if (record.kind == RecordKind::step && record.worker == 0) ends.push_back(record.end_ns);
    }
    return ends;
  };
  int with_classes = 0;
  for (int i = 0; i < 40; ++i) {
    Faults faults;
    const auto period = [&]() -> FaultPeriod {
      if (draw(3) == 0) return {};
      if (draw(2) == 0) return {.first_step = draw(3), .last_step = 2 + draw(2)};
      const double from_s = draw(5) * 1e-3;
      return {.from_s = from_s, .to_s = from_s + (1 + draw(4)) * 1e-3};
    };
    for (int n = draw(3); n > 0; --n)
      faults.slow_devices.push_back({.worker = draw(kMany), .factor = 1.0 + draw(4), .when = period()});
    for (int n = draw(3); n > 0; --n)
      faults.slow_links.push_back(
          {.links = {static_cast<LinkIndex>(2 * draw(kMany) + 1)}, .factor = 2.0 + draw(6), .when = period()});
    EngineOptions options = with(gpu_workers(make_star({.workers = kMany}), kMany), faults);
    const Timeline all = run(options);
    options.alike.assign(kMany, 0);
    const Timeline some = run(options);
    EXPECT_EQ(ends_of_first(some), ends_of_first(all)) << i;
    with_classes += some.classes.empty() ? 0 : 1;
  }
  EXPECT_GT(with_classes, 30);
}

TEST(CpuFaults, ASlowDeviceHoldsItsOpsBack) {
  EngineOptions options = cpu_options(1, 2);
  options.faults = std::make_shared<const Faults>(
      Faults{.slow_devices = {{.worker = 0, .device = 1, .factor = 3, .when = {.first_step = 1, .last_step = 1}}}});
  const Timeline timeline = open_cpu_engine(options)->run([](Worker& worker) {
    for (int step = 0; step < 3; ++step) {
      worker.begin_step(step);
      for (Device* device : worker.devices()) {
        device->compute_stream().launch(op::host_function("spin", {}, [] {
          const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(kSpinS);
          while (std::chrono::steady_clock::now() < end) {
          }
        }));
        device->synchronize();
      }
      worker.end_step();
    }
  });
  for (const Record& record : timeline.records) {
    if (record.kind != RecordKind::op) continue;
    const bool is_slow =
        record.step == 1 && timeline.devices[static_cast<std::size_t>(record.device)].name.ends_with(":1");
    EXPECT_GE(static_cast<double>(duration_ns(record)) * 1e-9, is_slow ? 3 * kSpinS : kSpinS);
  }
}

TEST(CpuFaults, ALostWorkerEndsTheRunWithItsError) {
  for (const LostWorker lost : {LostWorker{.worker = 1, .step = 2}, LostWorker{.worker = 1, .at_s = 0.02}}) {
    EngineOptions options = cpu_options(2, 1);
    options.faults = std::make_shared<const Faults>(Faults{.lost_workers = {lost}});
    try {
      open_cpu_engine(options)->run([](Worker& worker) {
        const std::vector<DeviceId> all = all_devices(2, 1);
        const std::vector<Tensor> buffers = {worker.devices()[0]->allocate(DType::f32, {16})};
        const std::vector<Stream*> streams = streams_of(worker.devices(), 0);
        for (int step = 0; step < 100'000; ++step) {
          worker.begin_step(step);
          streams[0]->launch(
              op::host_function("work", {}, [] { std::this_thread::sleep_for(std::chrono::microseconds(100)); }));
          worker.communicator(all).all_reduce(buffers, Reduction::sum, streams);
          worker.end_step();
        }
      });
      FAIL() << "the run did not end";
    } catch (const UnavailableError& error) {
      EXPECT_THAT(error.what(), HasSubstr("/job:worker/task:1 was lost"));
    }
  }
}

// Five ops and a collective on each worker; returns how many calls each made, and the error of the run.
struct CountedCalls {
  std::vector<std::atomic<int>> made = std::vector<std::atomic<int>>(2);
  std::string error{};
};
void count_calls(Engine& engine, CountedCalls& counted) {
  try {
    engine.run([&](Worker& worker) {
      const std::vector<Tensor> buffers = {worker.devices()[0]->allocate(DType::f32, {16})};
      const std::vector<Stream*> streams = streams_of(worker.devices(), 0);
      const auto made = [&] { ++counted.made[static_cast<std::size_t>(worker.index())]; };
      for (int i = 0; i < 5; ++i) {
        streams[0]->launch(op::fill(buffers[0], i));
        made();
      }
      std::vector<DeviceId> all;
      for (int task = 0; task < 2; ++task) {
        all.push_back(worker.devices()[0]->id());
        all.back().task = task;
      }
      worker.communicator(all).all_reduce(buffers, Reduction::sum, streams);
      made();
      worker.devices()[0]->synchronize();
    });
  } catch (const UnavailableError& error) {
    counted.error = error.what();
  }
}

TEST(LostAtACall, AWorkerMakesTheCallsBeforeItAndNoMore) {
  for (const int call : {0, 3, 5}) {
    for (const bool is_simulated : {true, false}) {
      const Faults faults{.lost_workers = {{.worker = 1, .call = call}}};
      const auto engine = is_simulated ? open_sim_engine(with(gpu_workers(make_star(), 2), faults))
                                       : open_cpu_engine(with(cpu_options(2, 1), faults));
      CountedCalls counted;
      count_calls(*engine, counted);
      EXPECT_THAT(counted.error, HasSubstr(fmt::format("/job:worker/task:1 was lost before call {} ", call)));
      EXPECT_EQ(counted.made[1], call);
    }
  }
}

TEST(LostAtACall, TheRunGoesOnAfterTheLastOne) {
  for (const bool is_simulated : {true, false}) {
    const Faults faults{.lost_workers = {{.worker = 1, .call = 1000}}};
    const auto engine = is_simulated ? open_sim_engine(with(gpu_workers(make_star(), 2), faults))
                                     : open_cpu_engine(with(cpu_options(2, 1), faults));
    CountedCalls counted;
    count_calls(*engine, counted);
    EXPECT_EQ(counted.error, "");
    EXPECT_EQ(counted.made[1], 6);
  }
}

TEST(FaultOptions, AreCheckedBeforeTheRun) {
  const auto refused = [](std::string_view engine, Faults faults) {
    EngineOptions options = with(gpu_workers(make_star(), 2), std::move(faults));
    for (WorkerSpec& worker : options.workers) worker.device_type = engine == "sim" ? DeviceType::gpu : DeviceType::cpu;
    try {
      check_options(engine_info(engine), options);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(refused("sim", {.slow_devices = {{.worker = 2}}}),
              HasSubstr("a fault is of worker 2, and the workers are 0 to 1"));
  EXPECT_THAT(refused("sim", {.slow_devices = {{.worker = 1, .device = 1}}}),
              HasSubstr("device 1 of /job:worker/task:1, which has 1"));
  EXPECT_THAT(refused("sim", {.slow_links = {{.links = {4}}}}), HasSubstr("link 4, and there are 4"));
  EXPECT_THAT(refused("sim", {.slow_devices = {{.factor = 0}}}), HasSubstr("must be greater than 0"));
  EXPECT_THAT(refused("sim", {.slow_devices = {{.when = {.from_s = 2, .to_s = 1}}}}),
              HasSubstr("ends before it begins"));
  EXPECT_THAT(refused("sim", {.jitter = {{.variation = 0}}}), HasSubstr("variation is 0"));
  EXPECT_THAT(refused("sim", {.lost_workers = {{.call = -1}}}), HasSubstr("lost before call -1, must be 0 or more"));
  EXPECT_EQ(refused("sim", {.slow_devices = {{.factor = 0.5}}}), "");
  EXPECT_THAT(refused("cpu", {.slow_devices = {{.factor = 0.5}}}), HasSubstr("must be at least 1"));
  EXPECT_THAT(refused("cpu", {.slow_links = {{.links = {1}, .factor = 2}}}),
              HasSubstr("engine 'cpu' has no slow links"));
  EXPECT_THAT(refused("cpu", {.jitter = {{.variation = 0.1}}}), HasSubstr("vary by themselves"));
}

}  // namespace
}  // namespace tandem
