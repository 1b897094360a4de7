// How the threads of a real run share the cores of this process (engine/threads/cores.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "engine/threads/cores.h"
#include "tests/engine/run_on_cpu.h"

namespace tandem {
namespace {

using std::chrono::milliseconds;

// Returns how many functions of a millisecond ran at the same time at most.
int most_at_a_time(int devices) {
  std::atomic<int> running{0}, most{0};
  const auto function = [&] {
    const int now = ++running;
    int before = most.load();
    while (before < now && !most.compare_exchange_weak(before, now)) {
    }
    const auto end = std::chrono::steady_clock::now() + milliseconds(1);
    while (std::chrono::steady_clock::now() < end) {
    }
    --running;
  };
  run_on_cpu(1, devices, [&](Worker& worker) {
    for (int i = 0; i < 5; ++i) {
      for (Device* device : worker.devices()) device->compute_stream().launch(op::host_function("work", {}, function));
    }
    for (Device* device : worker.devices()) device->synchronize();
  });
  return most.load();
}

// On a busy machine a thread may lose patience.
TEST(CpuCores, NoMoreOpsRunThanThereAreCores) {
  const int cores = threads::available_cores();
  int most = cores + 1;
  for (int attempt = 0; attempt < 20 && most > cores; ++attempt) most = most_at_a_time(2 * cores + 1);
  EXPECT_LE(most, cores);
}

// As many functions as there are cores wait for one of a stream that is still in line.
TEST(CpuCores, FunctionsThatWaitForOthersDoNotStopTheRun) {
  const int cores = threads::available_cores();
  std::atomic<bool> has_run{false};
  run_on_cpu(1, cores + 1, [&](Worker& worker) {
    for (int d = 0; d < cores; ++d) {
      worker.devices()[static_cast<std::size_t>(d)]->compute_stream().launch(op::host_function("waits", {}, [&] {
        while (!has_run.load()) std::this_thread::sleep_for(milliseconds(1));
      }));
    }
    worker.devices().back()->compute_stream().launch(op::host_function("is waited for", {}, [&] { has_run = true; }));
    for (Device* device : worker.devices()) device->synchronize();
  });
  EXPECT_TRUE(has_run.load());
}

// A task that only computes keeps its core until it blocks; the devices' work goes on beside it, or after patience.
TEST(CpuCores, TasksThatComputeDoNotStopTheirDevices) {
  const int cores = threads::available_cores();
  std::atomic<int> done{0};
  run_on_cpu(1, 1, [&](Worker& worker) {
    worker.tasks().run_concurrently(cores + 1, [&](int) {
      worker.devices().front()->compute_stream().launch(op::host_function("work", {}, [&] { ++done; }));
      while (done.load() == 0) std::this_thread::yield();
    });
    worker.devices().front()->synchronize();
  });
  EXPECT_EQ(done.load(), cores + 1);
}

TEST(CpuCores, ThreadsMayRunAnywhereAgainAfterARun) {
  cpu_set_t before, after;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  run_on_cpu(1, 4, [](Worker& worker) {
    for (Device* device : worker.devices()) device->compute_stream().launch(op::host_function("work", {}, [] {}));
    for (Device* device : worker.devices()) device->synchronize();
  });
  ASSERT_EQ(sched_getaffinity(0, sizeof(after), &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

}  // namespace
}  // namespace tandem
