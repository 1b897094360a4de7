// Times of kernels on a GPU whose figures are round, as closed forms of the model's constants.
#include "engine/sim/costs/kernel_costs.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/sim/costs/kernel_constants.h"

namespace tandem::sim {
namespace {

namespace constants = kernel_constants;
using Pass = ConvolutionShape::Pass;

constexpr double kPeak = 128e12;  // flop/s of all 64 multiprocessors
constexpr double kTileRate = kPeak * constants::kTrainingShare / 64;
// So much bandwidth that no kernel waits for memory, and so fast a cache that no tile does.
const KernelCosts kComputing(
    {.multiprocessors = 64, .clock_hz = 1e15, .memory_bandwidth = 1e18, .memory_latency_s = 1e-15});
const KernelCosts kMoving(
    {.multiprocessors = 64, .clock_hz = 1e9, .memory_bandwidth = 1e12, .memory_latency_s = 1e-15});
constexpr KernelRate kHalf = {.flops_per_s = kPeak, .element_bytes = 2, .is_matrix_unit = true};
constexpr KernelRate kSingle = {.flops_per_s = kPeak, .element_bytes = 4, .is_matrix_unit = false};

// Without a window, a volume is an image of as many points.
TEST(KernelCosts, VolumesAreImagesOfAsManyPointsAndWindows) {
  const ConvolutionShape image{.images = 2, .height = 32, .width = 16, .in_channels = 64, .out_channels = 64};
  ConvolutionShape volume = image;
  volume.height = 8;
  volume.image_depth = 4;
  for (const Pass pass : {Pass::forward, Pass::input_gradient, Pass::weight_gradient}) {
    ConvolutionShape flat = image;
    flat.pass = volume.pass = pass;
    EXPECT_EQ(kMoving.convolution_s(volume, kHalf), kMoving.convolution_s(flat, kHalf));
    EXPECT_EQ(kComputing.convolution_s(volume, kHalf), kComputing.convolution_s(flat, kHalf));
  }
  volume.kernel = 3;
  EXPECT_EQ(volume.weights(), 27 * 64 * 64);
  EXPECT_EQ(volume.flops(), 2.0 * 2 * 8 * 16 * 4 * 64 * 27 * 64);
  volume.stride = 2;
  EXPECT_EQ(volume.out_points(), 2 * 4 * 8);
  EXPECT_LT(kComputing.convolution_s(volume, kHalf), kComputing.convolution_s(image, kHalf) * 27);
}

TEST(KernelCosts, AProductOfWholeWavesRunsAtTheLargestProductsRate) {
  // 8 x 8 tiles of 128 x 128: one wave of the 64 multiprocessors.
  const double flops = 2.0 * 1024 * 1024 * 512;
  EXPECT_NEAR(kComputing.product_s({.m = 1024, .n = 1024, .k = 512}, 1, kHalf),
              flops / (kPeak * constants::kTrainingShare) + constants::kProductStart_s, 1e-12);
}

TEST(KernelCosts, ALastWaveOfOneTileTakesAsLongAsAFullOne) {
  // 65 products of one 32 x 32 tile each, which is the smallest there is.
  const double wave = 2.0 * 32 * 32 * 512 / kTileRate;
  EXPECT_NEAR(kComputing.product_s({.m = 32, .n = 32, .k = 1, .count = 64}, 1, kHalf),
              2.0 * 32 * 32 / kTileRate + constants::kProductStart_s, 1e-15);
  const double two = kComputing.product_s({.m = 32, .n = 32, .k = 512, .count = 128}, 1, kHalf);
  EXPECT_NEAR(two, 2 * wave + constants::kProductStart_s, 1e-12);
}

TEST(KernelCosts, AProductOfFewTilesDividesItsDepth) {
  // One 32 x 32 tile on 64 multiprocessors: 64 parts of the depth.
  EXPECT_NEAR(kComputing.product_s({.m = 32, .n = 32, .k = 6400}, 1, kHalf),
              2.0 * 32 * 32 * 100 / kTileRate + constants::kProductStart_s, 1e-12);
}

TEST(KernelCosts, AProductWithoutDepthOnlyWritesItsResult) {
  const double bytes = 1e9;  // of the gradient of weights from a batch of no rows
  EXPECT_NEAR(kMoving.product_s({.m = 1024, .n = 1024, .k = 0}, bytes, kHalf),
              bytes / kMoving.bandwidth(kHalf.element_bytes) + constants::kProductStart_s, 1e-12);
  EXPECT_EQ(kComputing.product_s({.m = 0, .n = 1024, .k = 512}, 0, kHalf), constants::kProductStart_s);
}

TEST(KernelCosts, KernelsMoveTheirBytesAtAShareOfTheBandwidth) {
  EXPECT_NEAR(kMoving.memory_s(8e9, 1, 2), 8e9 / (constants::kBandwidthShare * 1e12) + constants::kMemoryStart_s, 1e-9);
  EXPECT_NEAR(kMoving.memory_s(8e9, 5, 2) - kMoving.memory_s(8e9, 1, 2), 4 * constants::kMemoryStart_s, 1e-12);
  // What the device charges for every op is part of the start.
  EXPECT_NEAR(kMoving.memory_s(8e9, 1, 2) - kMoving.memory_s(8e9, 1, 2, 0.5e-6), 0.5e-6, 1e-12);
  EXPECT_DOUBLE_EQ(kMoving.memory_s(0, 1, 2, 1), 0);
}

TEST(KernelCosts, LoadsInFlightLimitAFastMemoryByElements) {
  const KernelCosts limited(
      {.multiprocessors = 100, .clock_hz = 1e9, .memory_bandwidth = 1e15, .memory_latency_s = 1e-6});
  const double elements_per_s = 100 * constants::kElementsInFlight / 1e-6;
  EXPECT_NEAR(limited.bandwidth(2), 2 * elements_per_s, 1e-3 * elements_per_s);
  EXPECT_NEAR(limited.bandwidth(4), 4 * elements_per_s, 1e-3 * elements_per_s);
}

ConvolutionShape convolution(Pass pass, std::int64_t kernel, std::int64_t stride, bool channels_last = true) {
  return {.pass = pass,
          .images = 64,
          .height = 32,
          .width = 32,
          .in_channels = 64,
          .out_channels = 128,
          .kernel = kernel,
          .stride = stride,
          .groups = 1,
          .channels_last = channels_last};
}

TEST(KernelCosts, ConvolutionsCountTheBytesOfEachPass) {
  const double x = 64.0 * 32 * 32 * 64, y = 64.0 * 32 * 32 * 128, w = 64 * 128;
  const auto expected = [](double bytes) {
    return bytes / (constants::kBandwidthShare * 1e12) + constants::kProductStart_s;
  };
  KernelRate fast = kHalf;
  fast.flops_per_s = 1e20;  // so that memory is all that counts
  const KernelCosts costs(
      {.multiprocessors = 64, .clock_hz = 1e15, .memory_bandwidth = 1e12, .memory_latency_s = 1e-15});
  EXPECT_NEAR(costs.convolution_s(convolution(Pass::forward, 1, 1), fast), expected(2 * (x + y + w)), 1e-9);
  EXPECT_NEAR(costs.convolution_s(convolution(Pass::weight_gradient, 1, 1), fast), expected(2 * (x + y) + 4 * w), 1e-9);
  // A 1x1 convolution of stride 2 reads a quarter of its input; the input's gradient is written whole.
  EXPECT_NEAR(costs.convolution_s(convolution(Pass::forward, 1, 2), fast), expected(2 * (x / 4 + y / 4 + w)), 1e-9);
  EXPECT_NEAR(costs.convolution_s(convolution(Pass::input_gradient, 1, 2), fast), expected(2 * (x + y / 4 + w)), 1e-9);
  // NCHW: inputs are transposed first, each read and written.
  const auto transposed = [&](Pass pass, double elements, int kernels) {
    EXPECT_NEAR(
        costs.convolution_s(convolution(pass, 1, 1, false), fast) - costs.convolution_s(convolution(pass, 1, 1), fast),
        2 * 2 * elements / (constants::kBandwidthShare * 1e12) + kernels * constants::kMemoryStart_s, 1e-9);
  };
  transposed(Pass::forward, x, 1);
  transposed(Pass::input_gradient, y, 1);
  transposed(Pass::weight_gradient, x + y, 2);
}

// Without exponentials, attention is its products over the attended pairs and some more keys of each query.
TEST(KernelCosts, AttentionComputesThePairsThatItsMaskLeaves) {
  const double queries = 64.0 * 1024, rate = kPeak * constants::kAttentionShare;
  AttentionShape shape{.count = 64, .queries = 1024, .keys = 1024, .head_size = 128};
  const auto seconds = [&] { return kComputing.attention_s(shape, 1, kHalf) - constants::kProductStart_s; };
  EXPECT_NEAR(seconds(), queries * (1024 + constants::kMoreKeys) * 2 * 128 / rate, 1e-12);
  shape.attended = 0.5;
  const double causal = seconds();
  EXPECT_NEAR(causal, queries * (512 + constants::kMoreKeys) * 2 * 128 / rate, 1e-12);
  shape.is_first_version = true;
  EXPECT_NEAR(seconds(), constants::kFirstVersionSlowness * causal, 1e-12);
}

TEST(KernelCosts, AttentionOfFewQueriesLeavesMultiprocessorsIdle) {
  AttentionShape shape{.count = 16, .queries = constants::kQueriesTogether, .keys = 1024, .head_size = 64};
  const double few = kComputing.attention_s(shape, 1, kHalf);
  shape.count = 64;  // one block of queries for each of them
  EXPECT_NEAR(kComputing.attention_s(shape, 1, kHalf), few, 1e-12);
}

TEST(KernelCosts, AttentionExposesAPartOfItsExponentials) {
  const KernelCosts costs(
      {.multiprocessors = 64, .clock_hz = 1e9, .memory_bandwidth = 1e18, .memory_latency_s = 1e-15});
  AttentionShape shape{.count = 64, .queries = 1024, .keys = 1024, .head_size = 128};
  const double products = costs.attention_s(shape, 1, kHalf);
  shape.makes_scores = true;
  const double exponentials = 64.0 * 1024 * (1024 + constants::kMoreKeys) * constants::kExposedExponentials;
  EXPECT_NEAR(costs.attention_s(shape, 1, kHalf) - products,
              exponentials / (constants::kExponentialsPerCycle * 1e9 * 64), 1e-12);
}

TEST(KernelCosts, WinogradSavesThreeQuartersOfTheFlopsWithoutTensorCores) {
  const KernelCosts costs(
      {.multiprocessors = 64, .clock_hz = 1e15, .memory_bandwidth = 1e18, .memory_latency_s = 1e-15});
  const ConvolutionShape shape = convolution(Pass::forward, 3, 1);
  const double direct = shape.flops() / (kPeak * constants::kTrainingShare);
  const double starts = constants::kProductStart_s + 2 * constants::kMemoryStart_s;  // of two transforms
  EXPECT_NEAR((costs.convolution_s(shape, kSingle) - starts) / direct, 0.25, 0.001);
  EXPECT_NEAR((costs.convolution_s(convolution(Pass::forward, 3, 2), kSingle) - constants::kProductStart_s) /
                  (convolution(Pass::forward, 3, 2).flops() / (kPeak * constants::kTrainingShare)),
              1, 0.001);
  KernelRate matrix = kSingle;
  matrix.is_matrix_unit = true;
  EXPECT_NEAR((costs.convolution_s(shape, matrix) - constants::kProductStart_s) / direct, 1, 0.001);
}

TEST(KernelCosts, SmallGroupsArePaddedForTensorCores) {
  // 32 groups of 4 channels are computed as 4 of 32: eight times the work.
  ConvolutionShape shape = {
      .images = 64, .height = 32, .width = 32, .in_channels = 128, .out_channels = 128, .kernel = 3, .groups = 32};
  const double grouped = kComputing.convolution_s(shape, kHalf);
  EXPECT_NEAR((grouped - constants::kProductStart_s) / (shape.flops() / (kPeak * constants::kTrainingShare)), 8, 0.5);
}

}  // namespace
}  // namespace tandem::sim
