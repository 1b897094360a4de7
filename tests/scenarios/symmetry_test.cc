// A run in which workers represent others ends with the figures of the run in which every worker is simulated, to the
// nanosecond.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/scenarios/symmetric_jobs.h"

namespace tandem {
namespace {

using symmetric::expect_equal_runs;
using symmetric::layers;
using symmetric::note_of;
using symmetric::SymmetricJob;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(Symmetry, TheReportSaysWhyEveryWorkerWasSimulated) {
  EXPECT_THAT(note_of({.machine = "dgx-a100",
                       .fabric = "{kind: rail, workers_per_leaf: 3, spines: 4, oversubscription: 5}",
                       .per_worker = 1,
                       .strategy = "{name: fully_sharded}",
                       .workload = layers(17, "5MB")}),
              HasSubstr("workers share links with different others, so that at most 4 workers are alike"));
  EXPECT_EQ(note_of({.workload = layers(6 * 8 * 4)}), "") << "one worker represents the others";
  EXPECT_EQ(note_of({.workers = 4, .workload = layers(4 * 8 * 4)}), "") << "it is not tried";
}

TEST(Symmetry, OneWorkerStandsForAllOfADataParallelJob) {
  EXPECT_EQ(expect_equal_runs({.workload = layers(6 * 8 * 4)}), 1);
  EXPECT_EQ(expect_equal_runs({.strategy = "{name: fully_sharded}", .workload = layers(6 * 8 * 4)}), 1);
}

TEST(Symmetry, UnevenSharesSplitAClass) {
  EXPECT_EQ(expect_equal_runs({.workers = 9, .workload = layers(9 * 8 * 4 + 8 * 4)}), 2);
  EXPECT_EQ(expect_equal_runs({.workers = 13, .workload = layers(13 * 8 * 4 + 6 * 8 + 3)}), 3);
}

TEST(Symmetry, AStragglerAndASlowLinkAreClassesOfTheirOwn) {
  EXPECT_GE(expect_equal_runs({.workers = 9, .workload = layers(9 * 8 * 4), .has_straggler = true}), 2);
  EXPECT_GE(expect_equal_runs({.workers = 9, .workload = layers(9 * 8 * 4), .has_slow_link = true}), 2);
}

TEST(Symmetry, OverriddenNodesAndLinksAreClassesOfTheirOwn) {
  const auto classes = [](const std::string& overrides, const std::string& machine = "hgx-h100") {
    return expect_equal_runs(
        {.machine = machine, .workers = 9, .per_worker = 4, .workload = layers(9 * 4 * 4), .overrides = overrides});
  };
  EXPECT_GE(classes("w4.gpu3: {slowdown: 2}"), 2);
  EXPECT_GE(classes("w7.nic2: {slowdown: 3, latency: 50us}"), 2);
  EXPECT_GE(classes("w2.gpu1 - w2.nvswitch0: {bandwidth: 30GB/s, latency: 9us}"), 2);
  EXPECT_EQ(classes("gpu2: {slowdown: 3}"), 1) << "equal on all machines";
  EXPECT_EQ(classes("\"w?.gpu2\": {slowdown: 3}"), 1) << "equal on all machines, and changed one by one";
  EXPECT_GE(classes("\"*.nic2\": {slowdown: 4}, w3.nic2: {slowdown: 1}"), 2) << "all rails but one";
  EXPECT_GE(classes("w3.gpu1: {slowdown: 2}, \"*.gpu0\": {slowdown: 2}"), 2);
  classes("w4.gpu3: {slowdown: 2}", "gb200-nvl72");
}

TEST(Symmetry, FabricsWithManyPathsStayExact) {
  for (const char* fabric :
       {"{kind: leaf_spine, workers_per_leaf: 4, spines: 2}", "{kind: rail, workers_per_leaf: 4, spines: 4}",
        "{kind: leaf_spine, workers_per_leaf: 4, spines: 3, oversubscription: 8}",
        "{kind: rail, workers_per_leaf: 4, spines: 3, oversubscription: 4}",
        "{kind: fat_tree, workers_per_leaf: 2, leaves_per_pod: 2, spines: 2, cores_per_spine: 2, rails: true}",
        "{kind: fat_tree, workers_per_leaf: 2, leaves_per_pod: 3, spines: 3, core_oversubscription: 16}",
        "{kind: torus, dimensions: [2, 2, 3]}", "{kind: torus, dimensions: [4, 3], oversubscription: 16}",
        "{kind: dragonfly, workers_per_leaf: 2, leaves_per_pod: 2, spines: 2, core_oversubscription: 4}",
        "{kind: dragonfly, workers_per_leaf: 1, leaves_per_pod: 3, spines: 3, rails: true}"}) {
    expect_equal_runs({.fabric = fabric, .workers = 12, .workload = layers(12 * 8 * 4)});
  }
}

TEST(Symmetry, RacksOfNvlinkUnderAFatTreeStayExact) {
  expect_equal_runs({.machine = "gb200-nvl72",
                     .fabric = "{kind: fat_tree, workers_per_leaf: 6, leaves_per_pod: 3, spines: 2, rails: true}",
                     .workers = 36,
                     .per_worker = 4,
                     .workload = layers(36 * 4 * 4)});
}

TEST(Symmetry, StagesInTwoRacksOfNvlinkSendThroughTheirOwnNics) {
  expect_equal_runs({.machine = "gb200-nvl72",
                     .workers = 36,
                     .per_worker = 4,
                     .strategy = "{name: mesh, data: 72, pipeline: 2, micro_batches: 4}",
                     .workload = "{kind: mlp, hidden: [512, 512, 512, 512], batch: 288}"});
}

TEST(Symmetry, WhatWorkersOfAModelSendEachOtherIsOneFlowAClass) {
  const std::string mlp = "{kind: mlp, hidden: [512, 512, 512, 512], batch: 768}";
  EXPECT_EQ(expect_equal_runs({.workers = 12,
                               .per_worker = 4,
                               .strategy = "{name: mesh, data: 12, tensor: 2, pipeline: 2, micro_batches: 4}",
                               .workload = mlp}),
            2);
  EXPECT_EQ(expect_equal_runs({.workers = 8,
                               .per_worker = 4,
                               .strategy = "{name: mesh, data: 8, tensor: 4, micro_batches: 2}",
                               .workload = mlp}),
            1);
}

// A GPU's examples and its gradients cross one PCIe link, but never at the same time. Trees of all-reduces tell
// machines apart, so that each would be a class of its own if they did.
TEST(Symmetry, FlowsThatAreNeverUnderWayTogetherTellNothingApart) {
  EXPECT_EQ(expect_equal_runs({.machine = "dgx-a100",
                               .workers = 16,
                               .strategy = "{name: mesh, data: 16, tensor: 8, micro_batches: 2}",
                               .workload = "{kind: mlp, hidden: [512, 512, 512, 512], batch: 1024}"}),
            1);
}

TEST(Symmetry, TokensAndExpertsThatStayInAWorkerTellNothingApart) {
  const std::string experts = "{kind: layers, model: files/experts.yaml, batch: 96, dtype: f16}";
  EXPECT_EQ(expect_equal_runs({.strategy = "{name: mesh, data: 24, context: 2, expert: 8}", .workload = experts}), 1);
  EXPECT_EQ(
      expect_equal_runs({.strategy = "{name: mesh, data: 6, context: 4, tensor: 2, expert: 4}", .workload = experts}),
      1);
}

// Groups of neighbours that have whole workers, and groups of workers at equal distances, which have the same experts.
TEST(Symmetry, GroupsOfWorkersTellThemNotApart) {
  const std::string experts = "{kind: layers, model: files/experts.yaml, batch: 96, dtype: f16}";
  const auto simulated = [&](int workers, int per_worker, const std::string& mesh) {
    return expect_equal_runs(
        {.workers = workers, .per_worker = per_worker, .strategy = "{name: mesh, " + mesh + "}", .workload = experts});
  };
  EXPECT_EQ(simulated(12, 4, "data: 48, expert: 8"), 1) << "pairs of workers";
  EXPECT_EQ(simulated(16, 2, "data: 32, expert: 8"), 1) << "groups of four";
  EXPECT_EQ(simulated(16, 2, "data: 16, expert: 8, pipeline: 2, micro_batches: 2"), 2) << "one for each stage";
  const std::string nearer = ", pipeline: 2, micro_batches: 2, axis_order: tensor_pipeline_data";
  EXPECT_EQ(simulated(16, 2, "data: 16, expert: 8" + nearer), 1) << "both stages on each worker";
  EXPECT_EQ(simulated(16, 4, "data: 16, tensor: 2, expert: 4" + nearer), 1);
  EXPECT_EQ(simulated(16, 8, "data: 16, context: 2, tensor: 2" + nearer), 1);
  EXPECT_EQ(simulated(16, 4, "data: 8, context: 2, tensor: 2" + nearer), 2) << "sequences are nearer than stages";
  EXPECT_EQ(simulated(16, 2, "data: 8, tensor: 2, expert: 4" + nearer), 2) << "a worker for each stage";
  EXPECT_EQ(simulated(24, 2, "data: 12, context: 4, expert: 8"), 1);
  EXPECT_EQ(simulated(24, 2, "data: 12, context: 4, expert: 8, context_exchange: all_to_all"), 1);
  const std::string of_rows =
      "{kind: layers, model: files/experts.yaml, batch: 96, dtype: f16, sequence_parallel: true}";
  EXPECT_EQ(expect_equal_runs({.workers = 16,
                               .per_worker = 4,
                               .strategy = "{name: mesh, data: 32, tensor: 2, expert: 8, expert_tensor: 1}",
                               .workload = of_rows}),
            1)
      << "whole experts of pairs of workers";
  EXPECT_EQ(expect_equal_runs({.workers = 16,
                               .per_worker = 4,
                               .strategy = "{name: mesh, data: 16, tensor: 4, expert: 4, expert_tensor: 2}",
                               .workload = of_rows}),
            1)
      << "the same of experts of which each device has half";
  EXPECT_EQ(expect_equal_runs({.workers = 16,
                               .per_worker = 4,
                               .strategy = "{name: mesh, data: 32, tensor: 2, expert_tensor: 1}",
                               .workload = of_rows}),
            1)
      << "all experts on all devices";
  EXPECT_EQ(simulated(24, 2, "data: 12, context: 4, context_exchange: ring"), 2) << "one for each place in a ring";
  EXPECT_EQ(simulated(24, 2, "data: 24, context: 2, context_exchange: ring"), 1) << "rings that stay in a worker";
  EXPECT_EQ(simulated(16, 2, "data: 32, expert: 4, replicate: 4, distributed_optimizer: true"), 1);
  EXPECT_EQ(simulated(32, 3, "data: 96, expert: 4"), 4) << "groups end inside workers";
}

TEST(Symmetry, TheReportSaysWhoStoodForWhom) {
  const RunResult result = symmetric::run({.workers = 9, .workload = layers(9 * 8 * 4 + 8 * 4)}, true);
  ASSERT_EQ(result.report.classes.size(), 2U);
  EXPECT_EQ(result.report.classes[0].representative, "/job:worker/task:0");
  EXPECT_EQ(result.report.classes[0].workers, 4);
  EXPECT_EQ(result.report.classes[0].devices, 32);
  EXPECT_EQ(result.report.classes[1].representative, "/job:worker/task:4");
  EXPECT_EQ(result.report.classes[1].workers, 5);
}

TEST(Symmetry, WorkersThatMeetOtherwiseAreAllSimulated) {
  const SymmetricJob job{.strategy = "{name: parameter_server}", .workload = layers(6 * 8 * 4)};
  const RunResult result = symmetric::run(job, true);
  EXPECT_THAT(result.report.classes, IsEmpty());
  for (const std::string& note : result.report.notes) EXPECT_THAT(note, Not(HasSubstr("every worker was simulated")));
}

}  // namespace
}  // namespace tandem
