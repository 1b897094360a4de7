// What a calibration decides to measure.
#include "scenarios/calibration/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "scenarios/calibration/calibrate.h"

namespace tandem {
namespace calibration {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Le;
using testing::ThrowsMessage;

Capabilities with_dtypes(std::vector<DType> dtypes) {
  Capabilities capabilities;
  capabilities.gemm_dtypes = std::move(dtypes);
  return capabilities;
}

std::int64_t largest_side(const std::vector<GemmShape>& shapes) {
  return shapes.back().m;
}

TEST(CalibrationPlan, MultipliesWhatTheEngineMultiplies) {
  const Capabilities all = with_dtypes({DType::f64, DType::f32, DType::tf32});
  EXPECT_THAT(plan_for(all, DeviceType::gpu, false, {}).gemm_dtypes, ElementsAre(DType::f64, DType::f32, DType::tf32));
  EXPECT_THAT(plan_for(all, DeviceType::gpu, true, {}).gemm_dtypes, ElementsAre(DType::f32));
  EXPECT_THAT(plan_for(all, DeviceType::gpu, true, {DType::bf16, DType::tf32}).gemm_dtypes, ElementsAre(DType::tf32));
}

TEST(CalibrationPlan, GoesToTheLargestProductsThatTimeAndMemoryAllow) {
  const Plan plan = plan_for(with_dtypes({DType::f32}), DeviceType::gpu, false, {});
  EXPECT_EQ(largest_side(gemm_shapes(plan, DType::f32, 60e12)), 8192);
  EXPECT_EQ(largest_side(gemm_shapes(fitting(plan, 8.0 * 3 * 4096 * 4096 * 8), DType::f32, 60e12)), 4096);
  const auto slow = gemm_shapes(plan, DType::f64, 0.2e12);
  EXPECT_LT(largest_side(slow), 8192);
  const auto sides = static_cast<std::size_t>(std::lround(std::cbrt(slow.size())));
  EXPECT_EQ(slow.size(), sides * sides * sides) << "a whole grid of whichever sides are left";
  EXPECT_EQ(gemm_shapes(fitting(plan, 1), DType::f32, 1).size(), 1U) << "never nothing";
}

TEST(CalibrationPlan, MultipliesLongMatrices) {
  const Plan plan = plan_for(with_dtypes({DType::f32}), DeviceType::cpu, true, {});
  const auto longer = long_gemm_shapes(plan, DType::f32, 50e9);
  EXPECT_FALSE(longer.empty());
  for (const GemmShape& shape : longer) {
    const auto is_long = [&](std::int64_t side) { return side > plan.gemm_sides.back(); };
    EXPECT_EQ(int{is_long(shape.m)} + int{is_long(shape.n)} + int{is_long(shape.k)}, 1) << label_of(shape);
  }
  EXPECT_TRUE(long_gemm_shapes(plan, DType::f32, 1e6).empty()) << "not even the grid can be measured";
  const Plan of_gpus = plan_for(with_dtypes({DType::f32}), DeviceType::gpu, true, {});
  const auto all = long_gemm_shapes(of_gpus, DType::f32, 60e12), fewer = long_gemm_shapes(of_gpus, DType::f32, 8e12);
  EXPECT_EQ(all.size(), 2 * fewer.size()) << "a slower GPU leaves the longest sides out";
}

TEST(CalibrationPlan, RepeatsWhatIsQuick) {
  const Plan plan = plan_for(with_dtypes({DType::f32}), DeviceType::gpu, true, {});
  EXPECT_EQ(repetitions_of(plan, {DType::f32, 8, 8, 8}, 1e12), 8);
  EXPECT_EQ(repetitions_of(plan, {DType::f32, 8192, 8192, 8192}, 1e12), 1);
}

TEST(CalibrationPlan, LeavesOutWhatHasNoRoom) {
  const Plan plan = fitting(plan_for(with_dtypes({}), DeviceType::gpu, true, {}), 64e6);
  for (const auto& sizes : {plan.memory_bytes, plan.copy_bytes, plan.collective_bytes}) {
    EXPECT_FALSE(sizes.empty());
    EXPECT_THAT(sizes, Each(Le(4'000'000)));
  }
}

TEST(Calibration, SaysWhichDevicesAnEngineLacks) {
  CalibrateOptions options;
  options.device_type = DeviceType::gpu;
  EXPECT_THAT([&] { calibrate("cpu", options); },
              ThrowsMessage<UnavailableError>(HasSubstr("engine 'cpu' has no GPU on this machine")));
  EXPECT_THAT([] { calibrate("cpus", {}); }, ThrowsMessage<UnavailableError>(HasSubstr("unknown engine 'cpus'")));
}

}  // namespace
}  // namespace calibration
}  // namespace tandem
