// The wait for the slowest of several devices.
#include "engine/sim/slowest_device.h"

#include <gtest/gtest.h>

#include "engine/engine.h"
#include "engine/sim/costs/kernel_constants.h"
#include "tests/engine/sim_support.h"

namespace tandem::sim {
namespace {

// H. L. Harter, Expected values of normal order statistics, Biometrika 48 (1961), table 1.
TEST(ExpectedMaximum, IsThatOfTheTables) {
  EXPECT_EQ(expected_maximum(1), 0);
  EXPECT_NEAR(expected_maximum(2), 0.56419, 1e-5);
  EXPECT_NEAR(expected_maximum(8), 1.42360, 1e-5);
  EXPECT_NEAR(expected_maximum(32), 2.06967, 1e-5);
  EXPECT_NEAR(expected_maximum(100), 2.50759, 1e-5);
}

TEST(ExpectedMaximum, GrowsSlowlyUpToAMillion) {
  EXPECT_GT(expected_maximum(1 << 20), expected_maximum(1 << 17));
  EXPECT_LT(expected_maximum(1 << 20), 6);
}

TEST(SlowestOf, IsTheMeanWhereNothingDiffers) {
  EXPECT_EQ(slowest_of(64, 0), 1);
  EXPECT_EQ(slowest_of(1, 0.1), 1);
  EXPECT_NEAR(slowest_of(8, 0.1), 1.142360, 1e-6);
}

// A GPU that follows the model of kernels, or not.
double ns_of_an_op(bool has_kernel_model, int devices_in_step, std::optional<double> spread) {
  StarOptions star;
  star.workers = 1;
  if (has_kernel_model) {
    star.gpu.architecture = "sm_80";
    star.gpu.multiprocessors = 100;
  }
  EngineOptions options;
  options.topology = make_star(star);
  options.workers = {{.device_type = DeviceType::gpu, .device_count = 1}};
  options.devices_in_step = devices_in_step;
  options.work_spread = spread;
  const Timeline timeline = simulate(options, [](Worker& worker) {
    Device& device = *worker.devices().front();
    const Tensor a = device.allocate(DType::f32, {4'000'000});
    device.compute_stream().launch(op::fill(a, 0));
    device.synchronize();
  });
  return static_cast<double>(duration_ns(records_of(timeline, RecordKind::op).front()));
}

TEST(DevicesInStep, TakeTheTimeOfTheSlowestWhereKernelsAreModelled) {
  const double alone = ns_of_an_op(true, 1, 0.5);
  EXPECT_GT(alone, 10'000);
  const double overhead = 1 + kernel_constants::kInStepOverhead;
  EXPECT_NEAR(ns_of_an_op(true, 8, 0.0) / alone, overhead, 1e-3);
  EXPECT_NEAR(ns_of_an_op(true, 8, 0.5) / alone, overhead * (1 + 0.5 * expected_maximum(8)), 1e-3);
  EXPECT_NEAR(ns_of_an_op(true, 8, {}) / alone, overhead * (1 + kernel_constants::kWorkSpread * expected_maximum(8)),
              1e-3);
}

TEST(DevicesInStep, DoNotChangeOtherDevices) {
  EXPECT_EQ(ns_of_an_op(false, 1, {}), ns_of_an_op(false, 8, 0.5));
}

}  // namespace
}  // namespace tandem::sim
