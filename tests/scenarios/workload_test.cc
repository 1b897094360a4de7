// Workloads at their edges: replicas without examples, and what the layers of a model send.
#include <gtest/gtest.h>

#include <cmath>

#include "scenarios/workloads/layer_kernels.h"
#include "tests/scenarios/running.h"

namespace tandem {
namespace {

Scenario small_mlp(int batch, const std::string& more) {
  return read_scenario("workload: {kind: mlp, hidden: [16], batch: " + std::to_string(batch) + "}\nsteps: 8\n" + more);
}

// More replicas than examples: the loss is still the mean over the batch, each example counted once.
TEST(Workloads, ReplicasWithoutExamplesChangeNothing) {
  for (const int batch : {1, 2, 5}) {
    const Report one = run_scenario(small_mlp(batch, "strategy: {name: one_device}\n")).report;
    const Report three = run_scenario(small_mlp(batch, "devices: {per_worker: 3}\n")).report;
    ASSERT_EQ(one.loss.size(), 8u);
    EXPECT_EQ(three.replicas, 3);
    ASSERT_EQ(three.loss.size(), one.loss.size());
    for (std::size_t step = 0; step < one.loss.size(); ++step) {
      EXPECT_NEAR(three.loss[step], one.loss[step], 1e-5 * std::abs(one.loss[step])) << batch << ", step " << step;
    }
  }
}

Report layers(const std::string& workload, const std::string& more) {
  return run_scenario(read_scenario("workload: {kind: layers, model: layers_small, " + workload + "}\nsteps: 4\n" +
                                    "warmup_steps: 1\n" + more))
      .report;
}

TEST(Workloads, LayersRunWhereAReplicaHasNoExamples) {
  const Report report = layers("batch: 2", "devices: {per_worker: 3}\n");
  EXPECT_EQ(report.replicas, 3);
  EXPECT_GT(report.summary.step_time.median, 0);
}

TEST(Workloads, EveryParameterIsReducedOnceAStep) {
  for (const auto& [bucket, calls] : std::vector<std::pair<std::string, int>>{{"1", 8}, {"1MB", 2}, {"1GB", 1}}) {
    const Report report =
        layers("batch: 16, dtype: bf16, bucket_bytes: " + bucket, "engine: {name: sim}\ntopology: hgx-h100\n");
    std::int64_t bytes = 0;
    int found = 0;
    for (const CollectiveSummary& collective : report.summary.collectives) {
      EXPECT_EQ(collective.operation, "all_reduce");
      EXPECT_EQ(collective.devices, 8);
      bytes += collective.bytes * collective.calls_per_step;
      found += collective.calls_per_step;
    }
    EXPECT_EQ(bytes, 2 * 1'147'690) << bucket << ": two bytes for each of the model's parameters";
    EXPECT_EQ(found, calls) << bucket;
  }
}

TEST(Workloads, GradientsHaveTheTypeOfTheParameters) {
  const Report report = layers("batch: 16, dtype: bf16, parameter_dtype: f32, bucket_bytes: 1GB, optimizer: adam",
                               "engine: {name: sim}\ntopology: hgx-h100\n");
  ASSERT_EQ(report.summary.collectives.size(), 1u);
  EXPECT_EQ(report.summary.collectives[0].bytes, 4 * 1'147'690);
}

TEST(Workloads, EachTensorCanBeAVariable) {
  // 2 tensors each in fc1 and fc2 are stated as one; three convolutions and three norms: 8 variables.
  const Report report =
      layers("batch: 16, dtype: bf16, variables: tensors", "engine: {name: sim}\ntopology: hgx-h100\n");
  int calls = 0;
  for (const CollectiveSummary& collective : report.summary.collectives) calls += collective.calls_per_step;
  EXPECT_EQ(calls, 8);
}

// A norm, a sum and an activation behind a convolution: 8 x 8 x 16 elements of two bytes.
TEST(Workloads, FusionsMoveAsOftenAsTheySay) {
  Layer layer;
  layer.name = "convolution";
  layer.then = {Pointwise::batch_norm, Pointwise::residual, Pointwise::relu};
  layer.convolution = Layer::Convolution{
      .height = 8, .width = 8, .in_channels = 16, .out_channels = 16, .kernel = 1, .stride = 1, .groups = 1};
  layer.gemm = Layer::Gemm{.rows = 64, .columns = 16, .depth = 16};
  const auto moved = [&](Fusion fusion, bool forward) {
    const LayerKernels kernels({.fusion = fusion}, DType::f16, 1);
    double bytes = 0;
    for (const LayerKernel& kernel : forward ? kernels.forward(layer) : kernels.backward(layer, true)) {
      bytes += kernel.bytes;
    }
    return bytes / (2 * 64 * 16);
  };
  constexpr double kMask = 1.0 / 16;  // a bit an element
  EXPECT_DOUBLE_EQ(moved(Fusion::none, true), 3 + 3 + 2);
  EXPECT_DOUBLE_EQ(moved(Fusion::none, false), 5 + 3 + 3);
  EXPECT_DOUBLE_EQ(moved(Fusion::hand, true), 3 + 1 + kMask);
  EXPECT_DOUBLE_EQ(moved(Fusion::hand, false), 5 + 4 + kMask);
  EXPECT_DOUBLE_EQ(moved(Fusion::persistent, true), 2 + 1 + kMask);
  EXPECT_DOUBLE_EQ(moved(Fusion::persistent, false), 3 + 2 + kMask);
  EXPECT_DOUBLE_EQ(moved(Fusion::in_convolutions, true), 3 + kMask);
  EXPECT_DOUBLE_EQ(moved(Fusion::in_convolutions, false), 3 + 2 + kMask);
}

TEST(Workloads, OneReplicaReducesNothing) {
  EXPECT_TRUE(layers("batch: 4", "").summary.collectives.empty());
}

}  // namespace
}  // namespace tandem
