// What reports say of a run beyond its times: what links carried, who waited for whom, the model's work, and costs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "reports/run/report_json.h"
#include "reports/run/report_text.h"
#include "reports/sweep/sweep_table.h"
#include "tests/scenarios/running.h"

namespace tandem {
namespace {

Report report_of(const std::string& job) {
  return run_scenario(read_scenario(job + "steps: 3\nwarmup_steps: 1\n")).report;
}

RunResult run(const std::string& topology, const std::string& strategy = "mirrored", int batch = 512) {
  return run_scenario(read_scenario("workload: {kind: layers, model: resnet15, batch: " + std::to_string(batch) +
                                    ", dtype: bf16, epoch: 5120}\nengine: {name: sim}\nstrategy: {name: " + strategy +
                                    "}\ntopology: " + topology +
                                    "\ndevices: {type: gpu}\nsteps: 3\nwarmup_steps: 1\n"));
}

TEST(LinkUse, InputOfAGpuComesFromTheNearestProcessor) {
  const RunResult result = run("hgx-h100");
  std::set<std::string> loaders;
  for (const LinkUse& link : result.timeline.links) {
    EXPECT_NE(link.kind, "cpu_interconnect") << link.from << " to " << link.to;
    if (link.from_kind == "cpu") loaders.insert(link.from);
  }
  EXPECT_THAT(loaders, testing::ElementsAre("w0.cpu0", "w0.cpu1"));
}

TEST(LinkUse, OfAMachineThatRepresentsOthersHasAllOfItsGpus) {
  const RunResult result = run("{cluster: {node: hgx-h100, workers: 8}}", "multi_worker_mirrored", 512 * 8);
  ASSERT_EQ(result.timeline.classes.size(), 1U);
  std::set<std::string> senders;
  for (const LinkUse& link : result.timeline.links) {
    if (link.kind == "nvlink" && link.from_kind == "gpu") senders.insert(link.from);
  }
  EXPECT_EQ(senders.size(), 8U);
}

// Stages post receives as soon as they have nothing else to do.
TEST(WaitingText, AHealthyPipelineHasNoStraggler) {
  const Report report = report_of(
      "workload: {kind: layers, model: bert_large_squad, batch: 16}\nengine: {name: sim}\n"
      "strategy: {name: pipeline_parallel, micro_batches: 4}\ntopology: hgx-h100\n"
      "devices: {type: gpu, per_worker: 4}\n");
  EXPECT_EQ(slowest_rank(report.summary.ranks), nullptr);
  EXPECT_THAT(report_text(report), testing::Not(testing::HasSubstr("costs the others")));
  EXPECT_THAT(report_text(report), testing::ContainsRegex("receive +[0-9.]+ [kKM]i?B +2"));
}

TEST(Records, WithoutThemThePartsOfAStepAreNotKnown) {
  const Report report = report_of(
      "workload: {kind: layers, model: resnet15, batch: 16}\nengine: {name: sim, records: steps}\ntopology: hgx-h100\n"
      "devices: {type: gpu, per_worker: 2}\nexpect: {max_exposed_communication: 1}\n");
  EXPECT_GT(report.summary.step_time.mean, 0);
  EXPECT_FALSE(report.has_parts());
  EXPECT_FALSE(report.summary.critical_path);
  const std::string text = report_text(report);
  EXPECT_THAT(text, testing::HasSubstr("where a step goes: not known (records: steps)\n"));
  EXPECT_THAT(text, testing::Not(testing::HasSubstr("idle")));
  const auto document = report_to_json(report);
  EXPECT_FALSE(document.contains("per_step_ns"));
  EXPECT_EQ(report_to_json(report_from_json(document.dump(), "report")).dump(), document.dump());
  EXPECT_EQ(limit_of(report), "unknown");
}

TEST(ModelWork, OfATableOfLayersGivesRatesAndCosts) {
  const Report report = run("{price: 36 $/h, cluster: {node: hgx-h100, workers: 2}}", "multi_worker_mirrored").report;
  ASSERT_TRUE(report.work && report.price);
  EXPECT_EQ(report.work->devices, 16);
  EXPECT_EQ(report.work->dtype, "bf16");
  EXPECT_EQ(report.work->tokens_per_unit, 0) << "images";
  EXPECT_GT(report.work->peak_flops_per_s, 16 * 900e12);
  EXPECT_EQ(report.price->machines, 2);
  const RunRates rates = rates_of(report);
  EXPECT_GT(rates.mfu, 0);
  EXPECT_LT(rates.mfu, 1);
  EXPECT_NEAR(rates.cost_per_epoch, 10 * rates.cost_per_step, 1e-12) << "an epoch has ten batches";
}

TEST(ModelWork, OfALanguageModelCountsTokens) {
  const Report report = report_of(
      "workload: {kind: layers, model: gpt, sizes: {tokens: 512, layers: 2}, batch: 8, dtype: bf16}\nengine: {name: "
      "sim}\n"
      "topology: hgx-h100\ndevices: {type: gpu, per_worker: 2}\n");
  EXPECT_EQ(report.work->tokens_per_unit, 512);
  EXPECT_DOUBLE_EQ(rates_of(report).tokens_per_s, 512 * report.throughput());
  EXPECT_FALSE(report.price);
}

}  // namespace
}  // namespace tandem
