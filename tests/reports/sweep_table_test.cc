#include "reports/sweep/sweep_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "reports/base/json_fields.h"
#include "reports/sweep/sweep_json.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

SweptPoint point(const std::string& strategy, int devices, double throughput) {
  return {.values = {{"strategy.name", strategy}, {"devices.workers", std::to_string(devices / 8)}},
          .state = PointState::done,
          .strategy = strategy,
          .devices = devices,
          .unit = "examples/s",
          .throughput = throughput,
          .step_time = 1000,
          .median_step_time = 1000,
          .per_step = {.compute = 700, .exposed_communication = 300},
          .limit = "compute"};
}

SweptPoint without_result(PointState state, const std::string& problem) {
  return {.values = {{"strategy.name", "mirrored"}, {"devices.workers", "4"}}, .state = state, .problem = problem};
}

SweepTable two_strategies() {
  return {.scenario = "two",
          .engine = "sim",
          .fields = {"strategy.name", "devices.workers"},
          .points = {point("mirrored", 8, 100), point("fully_sharded", 8, 50), point("mirrored", 32, 200),
                     point("fully_sharded", 32, 400), point("fully_sharded", 64, 390),
                     without_result(PointState::does_not_fit, "needs 90 GB of 80 GB"),
                     without_result(PointState::failed, "a, \"quoted\" problem")}};
}

TEST(SweepTable, RanksByThroughputAndThenByFewerDevices) {
  SweepTable table = two_strategies();
  EXPECT_THAT(table.ranking(), ElementsAre(3, 4, 2, 0, 1));
  table.points[4].throughput = 400;
  EXPECT_THAT(table.ranking(), ElementsAre(3, 4, 2, 0, 1));
}

TEST(SweepTable, TheFrontHasWhatNoPointWithAsManyDevicesBeats) {
  EXPECT_THAT(two_strategies().pareto_front(), ElementsAre(0, 3));
}

// On lines through the logarithms: ln(2) ahead at 8, ln(2) behind at 32, so even at 16.
TEST(SweepTable, FindsWhereStrategiesCross) {
  const std::vector<Crossing> crossings = two_strategies().crossings();
  ASSERT_EQ(crossings.size(), 2u) << "by devices and by workers";
  EXPECT_EQ(crossings[0].field, "devices");
  EXPECT_EQ(crossings[0].below, "mirrored");
  EXPECT_EQ(crossings[0].above, "fully_sharded");
  EXPECT_EQ(crossings[0].from, 8);
  EXPECT_EQ(crossings[0].to, 32);
  EXPECT_NEAR(crossings[0].at, 16, 1e-9);
  EXPECT_EQ(crossings[1].field, "devices.workers");
  EXPECT_NEAR(crossings[1].at, 2, 1e-9);
}

TEST(SweepTable, SaysWhatLimitsAPoint) {
  Report report;
  report.summary.per_step = {.compute = 50, .update = 10, .exposed_input = 20, .exposed_communication = 30, .idle = 40};
  EXPECT_EQ(limit_of(report), "compute");
  report.summary.per_step.exposed_communication = 61;
  EXPECT_EQ(limit_of(report), "communication");
  report.summary.per_step.exposed_input = 62;
  EXPECT_EQ(limit_of(report), "input");
  report.summary.per_step.idle = 63;
  EXPECT_EQ(limit_of(report), "waiting");
  report.summary.other_devices = OtherDevices{.busiest = "/job:ps/task:0/device:CPU:0", .count = 1, .per_step = {}};
  report.summary.other_devices->per_step = {.update = 61, .idle = 122};
  EXPECT_EQ(limit_of(report), "waiting") << "that device is no server";
  report.parameter_servers = 1;
  EXPECT_EQ(limit_of(report), "server");
}

TEST(SweepTable, TextShowsBestFrontCrossingsAndProblems) {
  const std::string text = sweep_text(two_strategies());
  EXPECT_THAT(text, testing::StartsWith("two: 5 of 7 points on engine sim, 1 does not fit, 1 failed\n"
                                        "best: 400 examples/s with strategy fully_sharded, workers 4: 1.000 us on 32 "
                                        "devices, limited by\ncompute\n"));
  EXPECT_THAT(text, HasSubstr("* on the front of devices against throughput: 2 points\n"));
  EXPECT_THAT(text, HasSubstr("  mirrored up to devices 8, fully_sharded from 32 on; about 16\n"));
  EXPECT_THAT(text, HasSubstr("      1 strategy mirrored, workers 4: needs 90 GB of 80 GB\n"));
}

TEST(SweepTable, TextOfManyPointsHasTheFastest) {
  SweepTable table = two_strategies();
  for (int i = 0; i < 40; ++i) table.points.push_back(point("mirrored", 8, 1 + i));
  EXPECT_THAT(sweep_text(table), HasSubstr("... and 33 slower ones (--all)\n"));
  table.points.push_back(point("mirrored", 4, 0.5));
  EXPECT_THAT(sweep_text(table), HasSubstr(": 3 points, all of them:\n"));
  EXPECT_THAT(sweep_text(table, true), testing::Not(HasSubstr("slower ones")));
}

TEST(SweepTable, CsvHasALineForEachPoint) {
  SweepTable table = two_strategies();
  table.points.erase(table.points.begin() + 1, table.points.end() - 1);
  EXPECT_EQ(
      sweep_csv(table),
      "strategy.name,devices.workers,state,devices,throughput,unit,step_time_ns,median_step_time_ns,compute_ns,update_"
      "ns,"
      "exposed_input_ns,exposed_communication_ns,other_ns,idle_ns,limit,pareto,parameters_bytes,gradients_bytes,"
      "optimizer_bytes,activations_bytes,buckets_bytes,input_bytes,workspace_bytes,reserved_bytes,memory_bytes,"
      "available_bytes,"
      "model_flops_per_s,model_flops_per_s_per_device,mfu,flops_per_step,tokens_per_s,tokens_per_s_per_device,"
      "cost_per_step,cost_per_unit,cost_per_token,cost_per_epoch,energy_per_step_j,energy_per_unit_j,currency,"
      "estimated_cpu_s,estimated_memory_bytes,goodput,job_s,evaluation_ns,evaluation_share,problem\n"
      "mirrored,1,done,8,100,examples/"
      "s,1000,1000,700,0,0,300,0,0,compute,1,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,,,,,,,,\n"
      "mirrored,4,failed,0,0,,0,0,0,0,0,0,0,0,,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,,,,,,,,\"a, "
      "\"\"quoted\"\" "
      "problem\"\n");
}

SweptPoint read_back(const SweptPoint& point) {
  const nlohmann::ordered_json json = point_to_json(point);
  Reading reading(json, "point");
  SweptPoint back = point_from_json(reading.root());
  reading.finish();
  return back;
}

TEST(SweepJson, PointsReadBackAsTheyWere) {
  SweptPoint done = point("mirrored", 8, 12.5);
  done.memory = MemoryNeed{.parameters = 1, .workspace = 2, .available = 80};
  for (const SweptPoint& one : {done, without_result(PointState::does_not_fit, "too small")}) {
    const SweptPoint back = read_back(one);
    EXPECT_EQ(point_to_json(back), point_to_json(one));
    EXPECT_EQ(back.per_step, one.per_step);
    EXPECT_EQ(back.memory, one.memory);
  }
}

TEST(SweepJson, SaysWhatAPointLacks) {
  const auto json = nlohmann::ordered_json::parse(R"({"values": {}, "state": "dine"})");
  Reading reading(json, "f");
  point_from_json(reading.root());
  EXPECT_THROW(
      {
        try {
          reading.finish();
        } catch (const InputError& error) {
          EXPECT_STREQ(error.what(), "f: state: is no state of a point: 'dine'");
          throw;
        }
      },
      InputError);
}

TEST(SweepJson, NamesTheBestAndTheFront) {
  const nlohmann::ordered_json json = sweep_to_json(two_strategies());
  EXPECT_EQ(json["kind"], "sweep");
  EXPECT_EQ(json["best"], 3);
  EXPECT_EQ(json["pareto_front"], nlohmann::ordered_json({0, 3}));
  EXPECT_EQ(json["points"].size(), 7u);
  EXPECT_EQ(json["points"][6]["state"], "failed");
}

}  // namespace
}  // namespace tandem
