// Experts on a mesh, simulated: who has them, which tokens go to them, and whose gradients are summed.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "tests/scenarios/blocks.h"
#include "tests/scenarios/collectives_of_step.h"

namespace tandem {
namespace {

// Two blocks with eight experts, of which each token uses two.
RunResult run_experts(const std::string& strategy, int devices, const std::string& more = "") {
  return run_scenario(read_scenario(
      "workload: {kind: layers, model: files/experts.yaml, batch: 4, dtype: f16, bucket_bytes: 1000GB" + more +
      "}\nstrategy: " + strategy + "\nengine: {name: sim}\ntopology: dgx-a100\ndevices: {per_worker: " +
      std::to_string(devices) + "}\nsteps: 2\nwarmup_steps: 1\n"));
}

constexpr double kExperts = 2 * 8 * 2 * 64.0 * 128;  // parameters of both blocks

TEST(DividedLayers, SendTokensToTheDevicesThatHaveTheirExperts) {
  const RunResult result = run_experts("{name: mesh, data: 4, expert: 4}", 4);
  EXPECT_EQ(count_of(result, "all_to_all"), 2 * (2 + 2)) << "there and back, forward and backward";
  for (const Record& record : collectives_of_step(result, "all_to_all")) {
    EXPECT_EQ(record.bytes, 2 * (2 * 32) * 64.0) << "each of 32 tokens to two experts";
  }
  const RunResult replicated = run_experts("{name: mesh, data: 4}", 4);
  const auto parameters = [](const RunResult& run) { return run.report.metrics.at("parameters_per_device"); };
  EXPECT_EQ(parameters(replicated) - parameters(result), kExperts * 3 / 4);
  EXPECT_EQ(all_reduces(replicated), 1);
  EXPECT_EQ(all_reduces(result), 1) << "nobody else has the same experts";
  EXPECT_EQ(collectives_of_step(result, "all_reduce").front().bytes, 2 * (parameters(replicated) - kExperts));
}

TEST(DividedLayers, SumGradientsOfExpertsOverThoseThatHaveTheSame) {
  const RunResult result = run_experts("{name: mesh, data: 4, expert: 2}", 4);
  const std::vector<Record> sums = collectives_of_step(result, "all_reduce");
  ASSERT_EQ(sums.size(), 2U);
  EXPECT_EQ(std::max(sums[0].bytes, sums[1].bytes), 2 * kExperts / 2);
  EXPECT_EQ(std::min(sums[0].ranks, sums[1].ranks), 2);
  EXPECT_EQ(std::max(sums[0].ranks, sums[1].ranks), 4);
  // Two of the devices that divide the experts work on the same sequences.
  EXPECT_EQ(count_of(run_experts("{name: mesh, data: 2, context: 2, expert: 4}", 4), "all_to_all"), 8);
}

// Two devices along tensor and two along data have a quarter of the experts each, and send a quarter of the tokens.
TEST(DividedLayers, KeepExpertsWholeOnTensorParallelDevices) {
  const std::string rows = ", sequence_parallel: true";
  const RunResult result = run_experts("{name: mesh, data: 2, tensor: 2, expert: 4, expert_tensor: 1}", 4, rows);
  EXPECT_EQ(count_of(result, "all_to_all"), 2 * (2 + 2));
  for (const Record& record : collectives_of_step(result, "all_to_all")) {
    EXPECT_EQ(record.bytes, 2 * (2 * 2 * 32 / 2) * 64.0) << "half of the tokens of two sequences to two experts each";
    EXPECT_EQ(record.ranks, 4);
  }
  const RunResult divided = run_experts("{name: mesh, data: 2, tensor: 2, expert: 2}", 4, rows);
  EXPECT_EQ(count_of(divided, "all_gather") - count_of(result, "all_gather"), 2 * 3) << "of experts' rows";
  EXPECT_EQ(count_of(divided, "reduce_scatter") - count_of(result, "reduce_scatter"), 2 * 2) << "likewise";
  EXPECT_DOUBLE_EQ(flops(result), flops(divided));
  const auto parameters = [](const RunResult& run) { return run.report.metrics.at("parameters_per_device"); };
  EXPECT_EQ(parameters(result), parameters(divided)) << "whole experts, but half as many";
  const RunResult twice = run_experts("{name: mesh, data: 2, tensor: 2, expert: 2, expert_tensor: 1}", 4, rows);
  EXPECT_EQ(parameters(twice) - parameters(result), kExperts / 4);
  const auto sums = [](const RunResult& run) {
    std::set<std::pair<double, int>> all;
    for (const Record& record : collectives_of_step(run, "all_reduce")) all.emplace(record.bytes, record.ranks);
    return all;
  };
  EXPECT_TRUE(sums(twice).contains({2 * kExperts / 2, 2})) << "over those with the same experts, once in each replica";
  const RunResult all = run_experts("{name: mesh, data: 2, tensor: 2, expert_tensor: 1}", 4, rows);
  EXPECT_TRUE(sums(all).contains({2 * kExperts, 4})) << "all devices have all experts";
}

// Two of the four devices along tensor divide each expert. Each sends a quarter of the tokens to those with the same
// part of other experts, and gathers what the other one of its pair got.
TEST(DividedLayers, DivideExpertsAmongSomeOfTheTensorParallelDevices) {
  const std::string rows = ", sequence_parallel: true";
  const RunResult result = run_experts("{name: mesh, tensor: 4, expert: 2, expert_tensor: 2}", 4, rows);
  EXPECT_EQ(count_of(result, "all_to_all"), 2 * (2 + 2));
  const double sent = 2 * (4 * 2 * 32 / 4) * 64.0;  // bytes
  for (const Record& record : collectives_of_step(result, "all_to_all")) {
    EXPECT_EQ(record.bytes, sent);
    EXPECT_EQ(record.ranks, 2);
  }
  const auto of_pairs = [&](const std::string& name) {
    std::vector<double> bytes;
    for (const Record& record : collectives_of_step(result, name)) {
      if (record.ranks == 2) bytes.push_back(record.bytes);
    }
    return bytes;
  };
  EXPECT_EQ(of_pairs("all_gather"), std::vector<double>(2 * 3, 2 * sent));
  EXPECT_EQ(of_pairs("reduce_scatter"), std::vector<double>(2 * 2, 2 * sent));
  const RunResult divided = run_experts("{name: mesh, tensor: 4}", 4, rows);
  EXPECT_EQ(count_of(result, "all_gather"), count_of(divided, "all_gather"));
  EXPECT_DOUBLE_EQ(flops(result), flops(divided));
  const auto parameters = [](const RunResult& run) { return run.report.metrics.at("parameters_per_device"); };
  EXPECT_EQ(parameters(result), parameters(divided)) << "half of half as many";
  const auto sums = [&](const std::string& experts) {
    std::set<std::pair<double, int>> all;
    const RunResult run = run_experts("{name: mesh, data: 2, tensor: 4, expert_tensor: 2" + experts + "}", 8, rows);
    for (const Record& record : collectives_of_step(run, "all_reduce")) all.emplace(record.bytes, record.ranks);
    return all;
  };
  EXPECT_TRUE(sums(", expert: 2").contains({2 * kExperts / 4, 2})) << "once in each replica";
  EXPECT_TRUE(sums("").contains({2 * kExperts / 2, 4})) << "every pair has all experts";
}

// Each of eight devices has one expert, the fullest 2.4 times as many rows as on average: of the 2 x 64 / 4 that a
// device sends of each of two examples.
TEST(DividedLayers, GiveWholeExpertsTheRowsOfEachDeviceAlsoWhereTheseDoNotDivide) {
  const RunResult result = run_scenario(
      read_scenario("workload: {kind: layers, model: mixtral, sizes: {layers: 2, tokens: 64}, batch: 4, dtype: bf16, "
                    "sequence_parallel: true, experts: {imbalance: {counts: [3, 1, 1, 1, 1, 1, 1, 1]}}}\n"
                    "strategy: {name: mesh, data: 2, tensor: 4, expert: 8, expert_tensor: 1}\nengine: {name: sim}\n"
                    "topology: dgx-a100\ndevices: {per_worker: 8}\nsteps: 2\nwarmup_steps: 1\n"));
  const auto gate = std::ranges::find(result.timeline.records, Name("block.0.expert_gate"), &Record::name);
  ASSERT_NE(gate, result.timeline.records.end());
  EXPECT_EQ(gate->flops, 2 * (2 * 77) * 4096 * 14336.0);
}

}  // namespace
}  // namespace tandem
