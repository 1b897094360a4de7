// Layers as pure work: what is measured on GPUs needs operands that stay as they are.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/engine.h"
#include "scenarios/workloads/layer_ops.h"
#include "tests/scenarios/running.h"

namespace tandem {
namespace {

// Where `left` has room for a gradient behind the input, and where it has not.
TEST(ScratchLayers, KeepTheirLeftOperand) {
  constexpr std::int64_t kBatch = 2;
  Layer layer;
  layer.name = "dense";
  layer.gemm = Layer::Gemm{.rows = 4, .columns = 16, .depth = 6};
  const ScratchSizes sizes = scratch_sizes({layer}, kBatch);
  const LayerKernels kernels({}, DType::f32, kBatch);
  for (const std::int64_t room : {std::int64_t{0}, 2 * sizes.result}) {
    open_engine("cpu", {})->run([&](Worker& worker) {
      Device& device = worker.cpu();
      Stream& stream = device.compute_stream();
      const auto filled = [&](std::int64_t count, double value) {
        Tensor tensor = device.allocate(DType::f32, {count});
        stream.launch(op::fill(tensor, value));
        return tensor;
      };
      const Tensor left = filled(sizes.left + room, 3), result = filled(sizes.result, 7);
      const Scratch scratch{.left = left, .right = filled(sizes.right, 0.5), .result = result, .keeps_left = true};
      const LayerOps ops(stream, layer, kBatch, DType::f32);
      for (const LayerKernel& kernel : kernels.forward(layer)) ops.launch(kernel, scratch);
      stream.synchronize();
      EXPECT_EQ(result.values<float>()[0], 3 * 0.5F * 6);
      for (const LayerKernel& kernel : kernels.backward(layer, true)) ops.launch(kernel, scratch);
      stream.synchronize();
      EXPECT_THAT(left.values<float>(), testing::Each(3));
    });
  }
}

// What a causal mask leaves of scores that stay on the chip: the work counts, memory for all of them is not needed.
TEST(ScratchLayers, ScoresOfFlashAttentionShareTheMemoryOfOthers) {
  constexpr std::int64_t examples = 2, rows = 64, count = 4, depth = 4;
  Layer layer;
  layer.name = "scores";
  layer.gemm = Layer::Gemm{.rows = rows, .columns = rows, .depth = depth, .count = count, .batched = true};
  layer.gemm->attended = 0.5;
  layer.scores = Layer::Scores::made;
  const ScratchSizes sizes = scratch_sizes({layer}, examples, false);
  EXPECT_EQ(sizes.result, examples * count * rows * depth) << "of the queries";
  EXPECT_EQ(scratch_sizes({layer}, examples).result, examples * count * rows * rows);
  const LayerKernels kernels({.attention = AttentionKernels::flash}, DType::f32, examples);
  const Timeline timeline = open_engine("cpu", {})->run([&](Worker& worker) {
    Device& device = worker.cpu();
    const auto filled = [&](std::int64_t elements) { return device.allocate(DType::f32, {elements}); };
    const Scratch scratch{.left = filled(sizes.left), .right = filled(sizes.right), .result = filled(sizes.result)};
    const LayerOps ops(device.compute_stream(), layer, examples, DType::f32);
    for (const LayerKernel& kernel : kernels.forward(layer)) ops.launch(kernel, scratch);
    device.compute_stream().synchronize();
  });
  double flops = 0, bytes = 0;
  for (const Record& record : timeline.records) {
    if (record.name.text() != "scores") continue;
    flops += record.flops;
    bytes += record.bytes;
  }
  EXPECT_EQ(flops, 0.5 * 2 * examples * count * rows * rows * depth);
  EXPECT_EQ(bytes, 4.0 * 2 * examples * count * rows * depth) << "queries and keys";
}

// A table of 16 million rows beside one example on each device: what updates and exchanges it takes as long as beside
// thousands, and no more ops.
TEST(ScratchLayers, ALargeTableBesideFewExamplesIsFewOps) {
  const auto run = [](int batch, const std::string& strategy) {
    Scenario scenario =
        read_scenario(fmt::format("workload: {{kind: layers, model: files/table.yaml, batch: {}, optimizer: adam}}\n"
                                  "strategy: {{name: {}}}\nengine: {{name: sim}}\ntopology: hgx-h100\n"
                                  "devices: {{type: gpu, per_worker: 8}}\nsteps: 2\n",
                                  batch, strategy));
    return run_scenario(scenario);
  };
  for (const std::string strategy : {"fully_sharded", "mirrored", "parameter_server"}) {
    const RunResult few = run(8, strategy), many = run(8000, strategy);
    EXPECT_LT(few.timeline.records.size(), 8 * 2 * 400U) << strategy;
    const auto step = [](const RunResult& result) { return static_cast<double>(result.report.summary.step_time.mean); };
    EXPECT_NEAR(step(few) / step(many), 1, 0.02) << strategy;
  }
}

}  // namespace
}  // namespace tandem
