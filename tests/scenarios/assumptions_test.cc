#include "scenarios/run/assumptions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "reports/run/report_json.h"
#include "reports/run/report_text.h"
#include "scenarios/collectives/collective_assumptions.h"
#include "scenarios/measurements/published_tables.h"
#include "scenarios/run/runner.h"
#include "tests/scenarios/running.h"

namespace tandem {
namespace {

using testing::HasSubstr;

Scenario on_h100s(const std::string& workload = "model: resnet50, batch: 256") {
  return read_scenario("workload: {kind: layers, " + workload +
                       ", dtype: bf16}\nstrategy: {name: mirrored}\n"
                       "engine: {name: sim}\ntopology: hgx-h100\ndevices: {type: gpu, per_worker: 8}\nsteps: 2\n");
}

TEST(Assumptions, AreThoseThatMoveTheStepMost) {
  const Scenario scenario = on_h100s();
  RunResult result = run_scenario(scenario);
  const std::vector<Assumption> all = assumptions_of(scenario, result, FigureRanges::of_catalog);
  ASSERT_FALSE(all.empty());
  ASSERT_LE(all.size(), kShownAssumptions);
  EXPECT_EQ(all[0].figure, "memory_latency of 'NVIDIA H100 SXM5 80 GB'") << "its step is bound by loads";
  EXPECT_EQ(all[0].value, "270.0 ns");
  EXPECT_THAT(all[0].source, HasSubstr("arXiv:2402.13499"));
  const Nanoseconds step = result.report.summary.step_time.mean;
  EXPECT_LT(all[0].step_from, step);
  EXPECT_GT(all[0].step_to, step);
  const auto farthest = [step](const Assumption& one) { return std::max(step - one.step_from, one.step_to - step); };
  for (std::size_t i = 1; i < all.size(); ++i) EXPECT_GE(farthest(all[0]), farthest(all[i]));
  EXPECT_EQ(assumptions_of(scenario, result, FigureRanges::of_catalog), all) << "they are deterministic";

  result.report.assumptions = all;
  EXPECT_THAT(report_text(result.report), HasSubstr("moved most by"));
  EXPECT_THAT(report_text(result.report),
              testing::ContainsRegex("\n  memory_latency of 'NVIDIA H100 SXM5 80 GB' +270.0 ns +220.0 ns [.][.] "));
  EXPECT_EQ(report_from_json(report_to_json(result.report).dump(), "again").assumptions, all);
}

// What a step does not use cannot move it, and what is measured is not assumed.
TEST(Assumptions, AreUsedAndNotMeasured) {
  Scenario scenario = on_h100s("model: bert_large, batch: 256");
  auto measured = std::make_shared<Topology>(*scenario.topology);
  measured->replace_devices([](NodeKind, const DeviceModel& model) {
    DeviceModel known = model;
    known.memory_latency_s.provenance = Provenance::measured;
    return std::make_shared<const DeviceModel>(known);
  });
  scenario.topology = measured;
  const std::vector<Assumption> all = assumptions_of(scenario, run_scenario(scenario), FigureRanges::of_catalog);
  ASSERT_FALSE(all.empty());
  for (const Assumption& one : all) {
    EXPECT_THAT(one.figure, testing::Not(HasSubstr("memory_latency")));
    EXPECT_THAT(one.figure, testing::Not(HasSubstr("sustained_quantised"))) << "nothing is quantised";
  }
}

// A figure with a range of its own may be what its file says, measured or not.
TEST(Assumptions, HaveTheRangesThatTheirFilesState) {
  const Scenario scenario = read_scenario(
      "workload: {kind: layers, model: resnet50, batch: 16, dtype: bf16}\nstrategy: {name: multi_worker_mirrored}\n"
      "engine: {name: sim}\ntopology: {cluster: {node: aws-p5, workers: 2}}\ndevices: {type: gpu, per_worker: 8}\n"
      "steps: 2\n");
  const std::vector<Assumption> all = assumptions_of(scenario, run_scenario(scenario), FigureRanges::of_catalog);
  const auto hop = std::ranges::find(all, "hop_latency of network efa", &Assumption::figure);
  ASSERT_NE(hop, all.end());
  EXPECT_EQ(hop->value, "30.00 us");
  EXPECT_EQ(hop->from, "20.00 us");
  EXPECT_EQ(hop->to, "45.00 us");
  EXPECT_LT(hop->step_from, hop->step_to);
}

// Over PCIe only, and where nobody said it.
TEST(Assumptions, GpusMayNotReachEachOther) {
  const auto assumptions = [](const std::string& topology) {
    const Scenario scenario = read_scenario(
        "workload: {kind: layers, model: bert_large, batch: 16, dtype: bf16}\nstrategy: {name: mirrored}\n"
        "engine: {name: sim}\ntopology: " +
        topology + "\ndevices: {type: gpu, per_worker: 8}\nsteps: 2\n");
    return assumptions_of(scenario, run_scenario(scenario), FigureRanges::stated);
  };
  const std::vector<Assumption> all = assumptions("l40s-8gpu");
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].figure, "p2p of the machine");
  EXPECT_EQ(all[0].value, "yes");
  EXPECT_EQ(all[0].from, "no");
  EXPECT_GT(all[0].step_from, all[0].step_to);
  EXPECT_THAT(assumptions("{based_on: l40s-8gpu, p2p: true}"), testing::IsEmpty());
  EXPECT_THAT(assumptions("rtx4090-8gpu"), testing::IsEmpty()) << "its file says that they do not";
  EXPECT_THAT(assumptions("hgx-h100"), testing::IsEmpty());
}

TEST(Assumptions, OfCollectivesAreThoseThatMoveTheirTimes) {
  const CollectiveJob job{
      .engine = "sim", .topology = machine_of("gcp-a4", 2), .device_type = DeviceType::gpu, .workers = 2, .devices = 8};
  CollectiveSweep sweep;
  for (std::int64_t bytes = 1024; bytes <= 1 << 30; bytes *= 32) sweep.sizes.push_back(bytes);
  const CollectiveResult result = run_collective(job, sweep);
  const auto all = assumptions_of(job, sweep, result, FigureRanges::stated, true);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].figure, "hop_latency of network roce");
  EXPECT_EQ(all[0].to, "40.00 us");
  ASSERT_EQ(all[0].times.size(), result.table.rows.size());
  EXPECT_EQ(all[0].times[0].us, result.table.rows[0].time_us());
  EXPECT_LT(all[0].times[0].from_us, all[0].times[0].us);
  EXPECT_GT(all[0].times[0].to_us, all[0].times[0].us);
  EXPECT_LT(all[0].times.back().effect(), all[0].times.front().effect()) << "bytes decide";
  EXPECT_EQ(assumptions_of(job, sweep, result, FigureRanges::stated, false)[0].times.size(), 3U);
  EXPECT_TRUE(has_cheap_assumptions(job));

  CollectiveRun run;
  run.assumptions = all;
  EXPECT_THAT(nccl_tests_text(run, result.table), HasSubstr("# Assumed              : hop_latency of network roce "));
  EXPECT_EQ(nccl_tests_json(run, result.table)["assumptions"][0]["times"].size(), result.table.rows.size());

  CollectiveJob measured{.engine = "cpu", .topology = nullptr, .workers = 1, .devices = 2};
  sweep.sizes = {1024};
  const CollectiveResult here = run_collective(measured, sweep);
  EXPECT_TRUE(assumptions_of(measured, sweep, here, FigureRanges::of_catalog, true).empty());
  EXPECT_FALSE(has_cheap_assumptions(measured));
}

TEST(Assumptions, OfAMeasuredRunAreNone) {
  const Scenario scenario = read_scenario(
      "workload: {kind: mlp, hidden: [8], batch: 8}\nstrategy: {name: one_device}\nengine: {name: cpu}\nsteps: 2\n");
  EXPECT_THAT(assumptions_of(scenario, run_scenario(scenario), FigureRanges::of_catalog), testing::IsEmpty());
}

}  // namespace
}  // namespace tandem
