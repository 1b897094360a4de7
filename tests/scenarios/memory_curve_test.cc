// The memory of a step at the times of its records, for every way to divide a model.
#include "scenarios/run/memory_curve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/scenarios/running.h"

namespace tandem {
namespace {

using testing::HasSubstr;

RunResult run_with_memory(const std::string& strategy, const std::string& workload = "",
                          const std::string& engine = "") {
  const Scenario scenario =
      read_scenario("workload: {kind: layers, model: gpt, sizes: {layers: 4}, batch: 16, dtype: bf16, optimizer: adam" +
                    workload + "}\nstrategy: " + strategy + "\nengine: {name: sim" + engine +
                    "}\ntopology: dgx-a100\ndevices: {type: gpu, per_worker: 4}\nsteps: 2\nwarmup_steps: 1\n");
  return run_scenario(scenario, {.measures_scaling = false});
}

std::int64_t most_bytes_of(const MemoryCurve& curve) {
  std::int64_t most = 0;
  for (const MemoryPoint& point : curve.points) most = std::max(most, curve.total_at(point));
  return most;
}

TEST(MemoryCurve, HasThePeakThatTheReportHas) {
  for (const char* const strategy :
       {"{name: mirrored}", "{name: fully_sharded}", "{name: mesh, pipeline: 2, data: 2, micro_batches: 4}",
        "{name: mesh, pipeline: 2, tensor: 2, micro_batches: 4, virtual_stages: 2}",
        "{name: mesh, pipeline: 2, data: 2, micro_batches: 4, schedule: zero_bubble}"}) {
    for (const char* const workload : {"", ", stack: {attention: flash, accumulation: in_products}"}) {
      const RunResult result = run_with_memory(strategy, workload);
      ASSERT_TRUE(result.memory) << strategy;
      EXPECT_EQ(most_bytes_of(*result.memory), result.report.memory->total()) << strategy << workload;
      EXPECT_EQ(result.memory->step, 1);
      EXPECT_EQ(result.memory->points.front().activations, 0);
      EXPECT_EQ(result.memory->points.back().activations, 0);
      EXPECT_TRUE(std::ranges::is_sorted(result.memory->points, {}, &MemoryPoint::at)) << strategy;
      EXPECT_LE(result.memory->points.back().at, result.memory->length);
    }
  }
}

// The last record of the backward pass of a layer begins before the next point.
TEST(MemoryCurve, HasTheTimesOfTheWork) {
  const RunResult result = run_with_memory("{name: mesh, pipeline: 2, data: 2, micro_batches: 2}");
  const MemoryCurve& curve = *result.memory;
  EXPECT_THAT(curve.device, HasSubstr("GPU:0"));
  const auto records_at = [&](Nanoseconds at) {
    std::vector<std::string> names;
    Nanoseconds start = 0;
    for (const Record& record : result.timeline.records) {
      if (record.kind == RecordKind::step && record.step == 1) start = record.start_ns;
    }
    for (const Record& record : result.timeline.records) {
      const bool is_on_device =
          record.device >= 0 && result.timeline.devices[static_cast<std::size_t>(record.device)].name == curve.device;
      if (is_on_device && record.kind == RecordKind::op && record.start_ns - start == at) names.push_back(record.name);
    }
    return names;
  };
  int forward = 0, backward = 0;
  for (const MemoryPoint& point : curve.points) {
    if (!point.moment.ends_with("block.0.intermediate")) continue;
    const bool is_forward = point.moment.starts_with("the forward pass");
    (is_forward ? forward : backward) += 1;
    EXPECT_THAT(records_at(point.at),
                testing::Contains(is_forward ? "block.0.intermediate" : "block.0.intermediate then gradient"))
        << point.moment;
  }
  EXPECT_EQ(forward, 2);
  EXPECT_EQ(backward, 2);
}

// Two passes that take turns have points in turn, each at records of its own pass.
TEST(MemoryCurve, FollowsPassesThatTakeTurns) {
  const RunResult result = run_scenario(
      read_scenario(
          "workload: {kind: layers, model: mixtral, sizes: {layers: 4, tokens: 512}, stack: {attention: flash}, "
          "batch: 16, dtype: bf16}\nstrategy: {name: mesh, data: 4, expert: 4, micro_batches: 4, "
          "overlap_experts: true}\nengine: {name: sim}\ntopology: dgx-a100\n"
          "devices: {type: gpu, per_worker: 4}\nsteps: 2\nwarmup_steps: 1\n"),
      {.measures_scaling = false});
  const MemoryCurve& curve = *result.memory;
  EXPECT_EQ(most_bytes_of(curve), result.report.memory->total());
  EXPECT_TRUE(std::ranges::is_sorted(curve.points, {}, &MemoryPoint::at));
  const auto at = [&](const std::string& moment) {
    const auto found = std::ranges::find(curve.points, moment, &MemoryPoint::moment);
    EXPECT_NE(found, curve.points.end()) << moment;
    return found == curve.points.end() ? -1 : found->at;
  };
  const Nanoseconds begin = at("the forward pass of micro-batch 1, block.0.query");
  const Nanoseconds middle = at("the backward pass of micro-batch 0, block.2.query");
  EXPECT_LT(begin, middle);
  EXPECT_LT(middle, at("the forward pass of micro-batch 1, block.3.query"));
  EXPECT_LT(at("the backward pass of micro-batch 0, block.0.query"),
            at("the forward pass of micro-batch 2, block.1.query"));
}

TEST(MemoryCurve, HasTheTimesOfBackwardPassesThatComputeAgain) {
  const RunResult result =
      run_with_memory("{name: mesh, data: 4, micro_batches: 2}", ", activation_checkpointing: true");
  const MemoryCurve& curve = *result.memory;
  EXPECT_EQ(most_bytes_of(curve), result.report.memory->total());
  EXPECT_GT(curve.points[curve.points.size() - 2].at, curve.length / 2) << "the last layer's backward pass";
  EXPECT_TRUE(std::ranges::is_sorted(curve.points, {}, &MemoryPoint::at));
}

TEST(MemoryCurve, IsThatOfPredictionsWithTheirRecords) {
  EXPECT_FALSE(run_with_memory("{name: mirrored}", "", ", records: steps").memory);
  Scenario scenario = read_scenario(
      "workload: {kind: mlp, data: digits, batch: 32}\nengine: {name: sim}\ntopology: dgx-a100\nsteps: 1\n");
  EXPECT_FALSE(run_scenario(scenario, {.measures_scaling = false}).memory);
}

TEST(MemoryCurve, KeepsItsPeakWhereItBecomesCoarse) {
  MemoryCurve curve{.length = 100, .need = {.parameters = 7, .activations = 42, .workspace = 1}};
  for (int i = 0; i < 100; ++i) curve.points.push_back({i, i == 37 ? 42 : i % 5, 1, std::to_string(i)});
  make_coarse(curve, 10);
  ASSERT_EQ(curve.points.size(), 10u);
  EXPECT_EQ(most_bytes_of(curve), curve.need.total());
  EXPECT_EQ(curve.points[3].at, 37);
}

}  // namespace
}  // namespace tandem
