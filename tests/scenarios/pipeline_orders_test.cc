// The orders of a pipeline's passes as runs: how long they wait, what they compute and keep, and what is hidden where
// passes take turns.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/scenarios/blocks.h"

namespace tandem {
namespace {

std::string pipeline_of(const std::string& schedule, int micro_batches, const std::string& more = "") {
  return "{name: pipeline_parallel, micro_batches: " + std::to_string(micro_batches) + ", schedule: " + schedule +
         more + "}";
}

// A pass of a whole stage takes one unit forward, and two backward. Shares of a step of 3 x 16 passes and what waits.
TEST(PipelineOrders, WaitAsLongAsTheirPapersSay) {
  const auto step = [](const std::string& strategy) { return step_of(run_blocks(strategy, 16, 4)); };
  const double whole = 3 * 16, usual = step(pipeline_of("1f1b", 16)), unit = usual / (whole + 9);
  EXPECT_NEAR(step(pipeline_of("zero_bubble", 16)) / unit, whole + 3, 1.5);
  EXPECT_NEAR(step(pipeline_of("zero_bubble", 16, ", virtual_stages: 2")) / unit, whole + 1.5, 1.5);
  EXPECT_NEAR(step(pipeline_of("zero_bubble_h2", 16)) / unit, whole + 3, 1.5)
      << "but for the first passes, no device waits";
  EXPECT_NEAR(step(pipeline_of("zero_bubble_v", 16)) / unit, whole + 1.5, 1.5);
  EXPECT_NEAR(step(pipeline_of("dualpipe_v", 16)) / unit, whole + 1.5, 1.5);
  EXPECT_NEAR(step(pipeline_of("dualpipe", 16)) / unit, whole + 1, 1.5);
}

// Pieces are gathered and summed beside the passes, over links that cost next to nothing. Devices add up and update
// less.
TEST(PipelineOrders, WaitNoLongerWithPieces) {
  const auto step = [](const std::string& schedule, bool has_pieces) {
    return step_of(run_blocks("{name: mesh, data: 2, pipeline: 4, micro_batches: 16, schedule: " + schedule +
                                  (has_pieces ? ", shard_parameters: true}" : "}"),
                              32, 8));
  };
  const double usual = step("1f1b", true);
  for (const char* schedule : {"zero_bubble", "zero_bubble_h2", "zero_bubble_v", "dualpipe_v", "dualpipe"}) {
    EXPECT_LT(step(schedule, true), step(schedule, false)) << schedule;
    EXPECT_LT(step(schedule, true), 0.95 * usual) << schedule;
  }
}

TEST(PipelineOrders, ComputeTheSame) {
  const double once = flops(run_blocks(pipeline_of("1f1b", 8), 8, 4));
  for (const char* schedule : {"zero_bubble", "zero_bubble_h2", "zero_bubble_v", "dualpipe_v", "dualpipe"}) {
    EXPECT_NEAR(flops(run_blocks(pipeline_of(schedule, 8), 8, 4)), once, 1e-9 * once) << schedule;
  }
}

// DualPipe: both copies of a stage sum their gradients, whichever of its devices is asked.
TEST(PipelineOrders, SumGradientsOfBothCopies) {
  const auto reduced = [](const std::string& strategy, int devices) {
    double bytes = 0;
    const RunResult result = run_blocks(strategy, 16, devices, ", bucket_bytes: 1GB");
    for (const CollectiveSummary& one : result.report.summary.collectives) {
      if (one.operation == "all_reduce") bytes += one.calls_per_step * static_cast<double>(one.bytes);
    }
    return bytes;
  };
  EXPECT_EQ(reduced(pipeline_of("1f1b", 16), 4), 0);
  const double gradients = 2 * 805343232.0;
  EXPECT_NEAR(reduced(pipeline_of("dualpipe", 16), 4), gradients, 0.01 * gradients);
  EXPECT_NEAR(reduced("{name: mesh, data: 2, pipeline: 4, micro_batches: 8, schedule: dualpipe}", 8), gradients,
              0.01 * gradients);
}

// Workers of both places of a stage take turns in its groups, so that those of one place are alike.
TEST(PipelineOrders, OneWorkerStandsForOthersWhereStagesAreOnTwoDevices) {
  const auto run = [](const std::string& engine, const std::string& divided) {
    const Scenario scenario = read_scenario(
        "workload: {kind: layers, model: files/routed_experts.yaml, batch: 320, dtype: bf16, optimizer: adam}\n"
        "strategy: {name: mesh, data: 80, expert: 8, pipeline: 2, micro_batches: 4, schedule: dualpipe, " +
        divided + ": true}\nengine: " + engine +
        "\ntopology: {cluster: {node: hgx-h100, workers: 20}}\ndevices: {type: gpu, per_worker: 8}\n"
        "steps: 2\nwarmup_steps: 1\n");
    RunOptions options;
    options.measures_scaling = false;
    return run_scenario(scenario, options);
  };
  for (const char* const divided : {"distributed_optimizer", "shard_parameters"}) {
    const RunResult some = run("{name: sim}", divided), all = run("{name: sim, symmetry: off}", divided);
    EXPECT_FALSE(some.report.classes.empty()) << divided;
    EXPECT_TRUE(all.report.classes.empty()) << divided;
    EXPECT_EQ(step_of(some), step_of(all)) << divided;
  }
}

// The same program with threads as devices: no order lets anybody wait for ever, whatever divides the stages.
class PipelineOrdersForReal : public testing::TestWithParam<const char*> {};

TEST_P(PipelineOrdersForReal, Run) {
  EXPECT_GT(run_blocks_for_real(std::string("{name: mesh, ") + GetParam() + "}", 16).summary.per_step.compute, 0);
}
INSTANTIATE_TEST_SUITE_P(
    Ways, PipelineOrdersForReal,
    testing::Values(
        "pipeline: 4, micro_batches: 16, schedule: zero_bubble_h2",
        "pipeline: 4, micro_batches: 8, schedule: zero_bubble, virtual_stages: 2",
        "pipeline: 4, micro_batches: 16, schedule: zero_bubble_v",
        "pipeline: 2, tensor: 2, micro_batches: 16, schedule: zero_bubble_v",
        "pipeline: 4, micro_batches: 16, schedule: dualpipe_v",
        "pipeline: 2, data: 2, micro_batches: 8, schedule: dualpipe_v, distributed_optimizer: true",
        "pipeline: 4, micro_batches: 8, schedule: dualpipe",
        "pipeline: 2, data: 2, micro_batches: 8, schedule: dualpipe, distributed_optimizer: true, "
        "overlap_gather: true",
        "pipeline: 2, data: 2, micro_batches: 4, schedule: dualpipe, distributed_optimizer: true, replicate: 2",
        "pipeline: 2, data: 2, micro_batches: 8, schedule: zero_bubble, shard_parameters: true",
        "pipeline: 2, data: 2, micro_batches: 8, schedule: zero_bubble, virtual_stages: 2, shard_parameters: true",
        "pipeline: 2, data: 2, micro_batches: 8, schedule: zero_bubble_h2, shard_parameters: true",
        "pipeline: 2, data: 2, micro_batches: 8, schedule: zero_bubble_v, shard_parameters: true",
        "pipeline: 2, data: 2, micro_batches: 8, schedule: dualpipe_v, shard_parameters: true",
        "pipeline: 4, micro_batches: 8, schedule: dualpipe, shard_parameters: true",
        "pipeline: 2, data: 2, micro_batches: 8, schedule: dualpipe, shard_parameters: true, replicate: 2"));

// A model with experts on eight simulated GPUs.
RunResult run_mixtral(const std::string& strategy) {
  const Scenario scenario = read_scenario(
      "workload: {kind: layers, model: mixtral, sizes: {layers: 4, tokens: 2048}, stack: {attention: flash}, batch: "
      "64, "
      "dtype: bf16}\nstrategy: " +
      strategy +
      "\nengine: {name: sim}\ntopology: hgx-h100\ndevices: {type: gpu, per_worker: 8}\nsteps: 2\nwarmup_steps: 1\n");
  RunOptions options;
  options.measures_scaling = false;
  return run_scenario(scenario, options);
}

// Communication that nothing hides, in nanoseconds a step.
std::int64_t exposed(const RunResult& result) {
  return result.report.summary.per_step.exposed_communication;
}

TEST(OverlapExperts, HidesTheirExchangesBehindTheOtherPass) {
  const std::vector<std::string> meshes = {"data: 8, expert: 8", "data: 4, expert: 4, pipeline: 2",
                                           "data: 4, expert: 4, pipeline: 2, virtual_stages: 2"};
  for (const std::string& mesh : meshes) {
    const RunResult apart = run_mixtral("{name: mesh, micro_batches: 8, " + mesh + "}");
    const RunResult beside = run_mixtral("{name: mesh, micro_batches: 8, overlap_experts: true, " + mesh + "}");
    EXPECT_NEAR(flops(beside), flops(apart), 1e-9 * flops(apart)) << mesh;
    EXPECT_LT(step_of(beside), step_of(apart)) << mesh;
    EXPECT_LT(exposed(beside), exposed(apart)) << mesh;
  }
}

// Whether passes take turns is part of DualPipe.
TEST(OverlapExperts, IsPartOfDualPipe) {
  const std::string mesh = "{name: mesh, data: 4, expert: 4, pipeline: 2, micro_batches: 8, schedule: ";
  const auto exposed_in = [&](const std::string& schedule) { return exposed(run_mixtral(mesh + schedule + "}")); };
  EXPECT_LT(exposed_in("dualpipe_v"), exposed_in("zero_bubble_v"));
}

}  // namespace
}  // namespace tandem
