// Blocks computed again in part, backward passes in two halves and parameters kept in pieces: what they cost and save.
#include <gtest/gtest.h>

#include <string>

#include "scenarios/estimates/device_memory.h"
#include "scenarios/job/job.h"
#include "tests/scenarios/blocks.h"

namespace tandem {
namespace {

TEST(DividedBlocks, ComputePartsAgain) {
  for (const char* strategy : {"{name: mesh}", "{name: mirrored}", "{name: fully_sharded}"}) {
    const double once = flops(run_blocks(strategy, 4, 1));
    const double whole = flops(run_blocks(strategy, 4, 1, ", activation_checkpointing: true"));
    const auto share = [&](const std::string& what) {
      return (flops(run_blocks(strategy, 4, 1, ", activation_checkpointing: " + what)) - once) / (whole - once);
    };
    EXPECT_NEAR(share("{every: 2}"), 0.5, 1e-9) << strategy;
    EXPECT_NEAR(share("{first: 1}"), 1.0 / 8, 1e-9) << strategy;
    EXPECT_NEAR(share("{together: 2}"), 1, 1e-9) << strategy;
    EXPECT_NEAR(share("{layers: [outer]}"), 4.0 / 6, 0.01) << "of six products of equal size, and small ones";
    EXPECT_NEAR(share("{layers: [inner, outer]}"), share("{layers: [inner]}") + share("{layers: [outer]}"), 1e-9);
  }
}

// Bubbles of three and of one pass for each stage but one, with eight micro-batches of three passes.
TEST(DividedBlocks, GradientsOfWeightsFillThePipeline) {
  const auto step = [](const char* more) {
    return step_of(run_blocks(std::string("{name: pipeline_parallel, micro_batches: 8") + more + "}", 8, 4));
  };
  EXPECT_NEAR(step(", schedule: zero_bubble") / step(""), (3 * 8 + 3.0) / (3 * 8 + 9), 0.03);
  const RunResult once = run_blocks("{name: pipeline_parallel, micro_batches: 8}", 8, 4);
  const RunResult apart = run_blocks("{name: pipeline_parallel, micro_batches: 8, schedule: zero_bubble}", 8, 4);
  EXPECT_NEAR(flops(apart), flops(once), 1e-9 * flops(once));
}

// A mesh along one axis whose devices keep pieces of the parameters is fully sharded training.
TEST(DividedBlocks, PiecesOfParametersTakeAsLongAsFullySharded) {
  const auto steps = [](const std::string& more, const std::string& passes) {
    const std::string buckets = ", bucket_bytes: 200MB" + more;
    const double sharded = step_of(run_blocks("{name: fully_sharded}", 32, 8, buckets + passes));
    const double mesh = step_of(run_blocks(
        "{name: mesh, data: 8, shard_parameters: true" + std::string(passes.empty() ? "}" : ", micro_batches: 4}"), 32,
        8, buckets));
    return mesh / sharded;
  };
  EXPECT_NEAR(steps("", ""), 1, 0.02);
  EXPECT_NEAR(steps(", activation_checkpointing: true", ""), 1, 0.02);
  EXPECT_NEAR(steps("", ", gradient_accumulation_steps: 4"), 1, 0.03);
}

TEST(DividedBlocks, PiecesAreGatheredForEachUseAndSummedInEachPass) {
  const auto calls = [](const std::string& mesh, const char* operation) {
    int sum = 0;
    const RunResult result = run_blocks("{name: mesh, " + mesh + "}", 16, 8, ", bucket_bytes: 1kB");
    for (const CollectiveSummary& one : result.report.summary.collectives) {
      if (one.operation == operation) sum += static_cast<int>(one.calls_per_step);
    }
    return sum;
  };
  // Eight blocks and the table; the last block stays for the backward pass, and the first for the next forward pass.
  EXPECT_EQ(calls("data: 8, shard_parameters: true", "reduce_scatter"), 9);
  EXPECT_EQ(calls("data: 8, shard_parameters: true", "all_gather"), 2 * 9 - 2);
  EXPECT_EQ(calls("data: 8, micro_batches: 2, shard_parameters: true", "reduce_scatter"), 2 * 9);
  EXPECT_EQ(calls("data: 8, shard_parameters: true", "all_reduce"), 0);
  EXPECT_EQ(calls("data: 8, shard_parameters: true, replicate: 2", "all_reduce"), 4 * 9) << "of four pieces each";
  EXPECT_EQ(calls("data: 8, shard_parameters: true, replicate: 2", "reduce_scatter"), 2 * 9);
}

// With gradients of weights as passes of their own, pieces are gathered for the same passes as before: the gradients of
// weights read none. Theirs are summed once in each pass, nine of them.
TEST(DividedBlocks, PiecesAreNotGatheredForGradientsOfWeights) {
  const auto calls = [](const std::string& schedule, const char* operation) {
    int sum = 0;
    const RunResult result = run_blocks(
        "{name: mesh, data: 2, pipeline: 2, micro_batches: 4, shard_parameters: true, schedule: " + schedule + "}", 16,
        4, ", bucket_bytes: 1kB");
    for (const CollectiveSummary& one : result.report.summary.collectives) {
      if (one.operation == operation) sum += static_cast<int>(one.calls_per_step);
    }
    return sum;
  };
  const int gathered = calls("1f1b", "all_gather");
  EXPECT_GT(gathered, 4 * 9);
  EXPECT_EQ(calls("zero_bubble", "all_gather"), gathered);
  for (const char* schedule : {"1f1b", "zero_bubble", "zero_bubble_h2", "zero_bubble_v", "dualpipe_v"}) {
    EXPECT_EQ(calls(schedule, "reduce_scatter"), 4 * 9) << schedule;
  }
  EXPECT_EQ(calls("dualpipe", "reduce_scatter"), 2 * 9) << "half of the micro-batches are at each end";
}

// Gradients of weights that are a pass of their own need no more whole parameters and gradients at a time.
TEST(DividedBlocks, AsManyUnitsAreWholeInEveryOrder) {
  const auto need = [](const std::string& schedule) {
    const Scenario scenario = read_scenario(
        "workload: {kind: layers, model: llama, sizes: {layers: 8}, batch: 16, dtype: bf16, optimizer: adam}\n"
        "strategy: {name: mesh, data: 2, pipeline: 4, micro_batches: 8, shard_parameters: true, schedule: " +
        schedule + "}\nengine: {name: sim}\ntopology: dgx-a100\ndevices: {per_worker: 8}\nsteps: 1\n");
    return *memory_need(job_of(scenario));
  };
  const MemoryNeed usual = need("1f1b");
  for (const char* const schedule : {"zero_bubble", "zero_bubble_h2"}) {
    const MemoryNeed other = need(schedule);
    EXPECT_EQ(other.parameters, usual.parameters) << schedule;
    EXPECT_EQ(other.gradients, usual.gradients) << schedule;
    EXPECT_EQ(other.optimizer, usual.optimizer) << schedule;
    EXPECT_EQ(other.buckets, usual.buckets) << schedule;
    EXPECT_GE(other.activations, usual.activations) << schedule;
  }
}

}  // namespace
}  // namespace tandem
