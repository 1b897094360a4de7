// Waits that are not the engine's: they end the process with a message, and a thread that works does not.
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "tests/engine/sim_support.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

class SimWatch : public testing::Test {
 protected:
  void SetUp() override {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    set_limit("0.4");
  }
  void TearDown() override { unsetenv("TANDEM_SIM_WATCHDOG_S"); }
  static void set_limit(const char* seconds) { setenv("TANDEM_SIM_WATCHDOG_S", seconds, 1); }

  static void compute_for(double seconds) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (std::chrono::steady_clock::now() < end) {
    }
  }
  // Values are real, so the function runs when the device has come to it.
  static void run_on_device(const std::function<void()>& function) {
    EngineOptions options = gpu_workers(make_star({.workers = 1}), 1);
    options.values = ValueMode::real;
    simulate(std::move(options), [&](Worker& worker) {
      worker.devices()[0]->compute_stream().launch(op::host_function("work", {1e6, 0, DType::f32}, function));
      worker.devices()[0]->synchronize();
    });
  }
  // Worker 0 waits in simulated time with a mutex that worker 1 takes, too.
  static void hold_over_a_wait() {
    std::mutex mutex;
    simulate(gpu_workers(make_star({.workers = 3}), 3), [&](Worker& worker) {
      Stream& stream = worker.devices()[0]->compute_stream();
      if (worker.index() == 2) return worker.await_end_of_job();
      stream.launch(cost_only(1e9));
      const std::lock_guard lock(mutex);
      stream.synchronize();
    });
  }
};

using testing::ExitedWithCode;

TEST_F(SimWatch, AMutexHeldOverAWaitEndsTheProcessAndNamesTheTasks) {
  EXPECT_EXIT(
      hold_over_a_wait(), ExitedWithCode(5),
      "tandem: the simulation is blocked: nothing has happened in it for 0.4 s, and its thread waits outside the "
      "engine\nat 0 ns of simulated time worker 1 blocks the thread; the last that it has issued is work on "
      "/job:worker/replica:0/task:1/device:GPU:0\n  worker 0 waits for stream 0 of "
      "/job:worker/replica:0/task:0/device:GPU:0, which is at op 'work'\n  worker 2 waits for the "
      "other programs of "
      "the job to end\n(.|\n)*Tasks::make_monitor");
}

TEST_F(SimWatch, AnOpThatWaitsForTheProgramEndsTheProcess) {
  std::mutex mutex;
  const auto block = [&] {
    run_on_device([&] {
      mutex.lock();
      mutex.lock();
    });
  };
  EXPECT_EXIT(block(), ExitedWithCode(5), "an op of a device blocks the thread(.|\n)*work");
}

TEST_F(SimWatch, LeavesThreadsThatComputeAlone) {
  run_on_device([] { compute_for(1); });
  run_on_device([] { std::thread([] { compute_for(1); }).join(); });  // in another thread
}

TEST_F(SimWatch, IsOffWithALimitOfZero) {
  set_limit("0");
  run_on_device([] { std::this_thread::sleep_for(std::chrono::seconds(1)); });
}

TEST_F(SimWatch, WrongLimitsAreRefused) {
  for (const char* wrong : {"soon", "", "-1", "inf", "nan", "3 s"}) {
    set_limit(wrong);
    std::string message;
    try {
      run_on_device([] {});
    } catch (const Error& error) {
      message = error.what();
    }
    EXPECT_THAT(message, testing::StartsWith(std::string("TANDEM_SIM_WATCHDOG_S is '") + wrong +
                                             "', must be a number of seconds"));
  }
}

}  // namespace
}  // namespace tandem
