// What a plan says of what is known: its certificate, as a table, as text, as JSON and as a page.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "reports/pages/page.h"
#include "reports/plan/plan_json.h"
#include "reports/plan/plan_table.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Two simulated points, one that does not fit, and one that was left out.
PlanTable small_plan() {
  PlanTable table{
      .sweep = {.scenario = "which", .engine = "sim", .fields = {"strategy.data", "strategy.tensor"}, .points = {}},
      .wanted = 2};
  for (const auto& [data, tensor] : {std::pair("1", "8"), {"2", "4"}, {"4", "2"}, {"8", "1"}}) {
    table.sweep.points.push_back({.values = {{"strategy.data", data}, {"strategy.tensor", tensor}}, .devices = 8});
    table.planned.push_back({.least_step_s = 1, .units = 64});
  }
  const auto set = [&](std::size_t place, double step_s) {
    SweptPoint& point = table.sweep.points[place];
    point.state = PointState::done;
    point.unit = "sequences/s";
    point.throughput = 64 / step_s;
    point.step_time = static_cast<Nanoseconds>(step_s * 1e9);
    point.limit = "compute";
    point.per_step.compute = point.step_time;
    point.memory =
        MemoryNeed{.parameters = 1'000'000'000 * static_cast<std::int64_t>(place + 1), .available = 80'000'000'000};
    point.expected_error = {{.low = -0.1, .high = 0.1}};
  };
  set(0, 2);
  table.planned[0].is_whole = true;
  set(1, 2.1);
  table.sweep.points[2].state = PointState::does_not_fit;
  table.sweep.points[2].problem = "needs 90.00 GB of 80.00 GB";
  table.planned[3].least_step_s = 2.5;
  return table;
}

// Points of which nothing but a bound is known make the certificate weaker; those that cannot run do not.
TEST(PlanTable, StatesHowMuchBetterAPointCouldBe) {
  PlanTable table{.sweep = {.scenario = "four", .engine = "sim", .fields = {}, .points = {}}, .wanted = 1};
  table.sweep.points.resize(4, {.values = {}});
  table.planned.resize(4, {.units = 10});
  EXPECT_EQ(table.gap(), std::numeric_limits<double>::infinity());
  table.sweep.points[0] = {.values = {}, .state = PointState::done, .throughput = 5};  // 2 s for ten units
  table.planned[0].is_whole = true;
  EXPECT_EQ(table.gap(), std::numeric_limits<double>::infinity()) << "nothing is known of the others";
  table.sweep.points[1].state = PointState::does_not_fit;
  table.planned[2].least_step_s = 1.6;
  table.planned[3].least_step_s = 3;
  EXPECT_DOUBLE_EQ(table.gap(), 0.25);
  EXPECT_EQ(table.ruled_out(), 1);
  EXPECT_THAT(plan_text(table), HasSubstr("no point of this space takes less than 1.600 s: the best is within 25.0 %"));
  table.planned[2].least_step_s = 2;
  EXPECT_EQ(table.gap(), 0);
  EXPECT_EQ(table.ruled_out(), 2);
  EXPECT_THAT(plan_text(table), HasSubstr("certain: no point of this space takes less"));
  table.planned[0].is_whole = false;
  EXPECT_DOUBLE_EQ(table.gap(), 1 / (1 - kQuickError) - 1);
}

TEST(PlanTable, CountsCostWhereThatIsTheGoal) {
  PlanTable table{
      .sweep = {.scenario = "two", .engine = "sim", .fields = {}, .points = {}}, .goal = PlanGoal::cost, .wanted = 1};
  table.sweep.points.resize(2, {.values = {}});
  table.planned = {{.least_step_s = 1, .units = 10, .price_per_s = 4, .is_whole = true},
                   {.least_step_s = 3, .units = 10, .price_per_s = 1}};
  table.sweep.points[0] = {.values = {}, .state = PointState::done, .throughput = 5, .rates = {.cost_per_unit = 0.8}};
  EXPECT_DOUBLE_EQ(table.value(0), 0.8);
  EXPECT_DOUBLE_EQ(table.least(1), 0.3);
  EXPECT_NEAR(table.gap(), 0.8 / 0.3 - 1, 1e-12);
}

TEST(PlanTable, CountsEnergyWhereThatIsTheGoal) {
  PlanTable table{
      .sweep = {.scenario = "two", .engine = "sim", .fields = {}, .points = {}}, .goal = PlanGoal::energy, .wanted = 1};
  table.sweep.points.resize(2, {.values = {}});
  table.planned = {{.least_step_s = 1, .units = 10, .power_w = 8000, .is_whole = true},
                   {.least_step_s = 3, .units = 10, .power_w = 2000}};
  table.sweep.points[0] = {.values = {},
                           .state = PointState::done,
                           .unit = "examples/s",
                           .throughput = 5,
                           .rates = {.energy_per_unit_j = 1600}};
  EXPECT_DOUBLE_EQ(table.value(0), 1600);
  EXPECT_DOUBLE_EQ(table.least(1), 600);
  EXPECT_THAT(plan_text(table), HasSubstr("444.4 kWh per million examples"));
}

TEST(PlanTable, SaysWhatIsBestAndHowCertainThatIs) {
  PlanTable table = small_plan();
  const std::string text = plan_text(table);
  EXPECT_THAT(text,
              HasSubstr("which: the best of 4 points for time, on engine sim\n"
                        "best: data 1, tensor 8: 2.000 s a step, 32 sequences/s on 8 devices, limited by compute"));
  EXPECT_THAT(text, HasSubstr("certain: no point of this space takes less"));
  EXPECT_THAT(text, HasSubstr("points: 2 simulated, 1 do not fit, 1 ruled out by their bounds"));
  EXPECT_THAT(text, HasSubstr("their order is not certain: 19 of 20 measured steps were within -10..+10 %"));
  EXPECT_THAT(text, Not(HasSubstr("as it is")));
  table.usual = table.sweep.points[1];
  EXPECT_THAT(plan_text(table),
              HasSubstr("as it is, the scenario takes 2.100 s a step; the best is 1.05 times as good"));
  for (SweptPoint& point : table.sweep.points) point.expected_error = {{.low = -0.01, .high = 0.01}};
  EXPECT_THAT(plan_text(table), Not(HasSubstr("not certain")));
}

TEST(PlanTable, WithoutAPointThatFitsShowsWhatIsLacking) {
  PlanTable table = small_plan();
  std::int64_t needed = 90'000'000'000;
  for (SweptPoint& point : table.sweep.points) {
    point = {.values = point.values, .state = PointState::does_not_fit};
    point.memory = MemoryNeed{.parameters = needed += 1'000'000'000, .available = 80'000'000'000};
  }
  EXPECT_THAT(plan_text(table), HasSubstr("The one that lacks least, 11.00 GB: data 1, tensor 8:\nneeds 91.00 GB"));
  EXPECT_TRUE(plan_to_json(table)["best"].empty());
}

TEST(PlanTable, AsJsonHasBoundsAndPlaces) {
  const nlohmann::ordered_json json = plan_to_json(small_plan());
  EXPECT_EQ(json["kind"], "plan");
  EXPECT_THAT(json["best"].get<std::vector<int>>(), ElementsAre(0, 1));
  EXPECT_EQ(json["gap"], 0);
  EXPECT_EQ(json["counts"]["ruled_out"], 1);
  EXPECT_EQ(json["points"][3]["least_step_s"], 2.5);
  EXPECT_EQ(json["points"][0]["whole"], true);
  EXPECT_EQ(json["points"][1]["whole"], false);
}

// The second point in place of the scenario as it is, which differs from the first one in two fields.
PlanTable changed_plan() {
  PlanTable table = small_plan();
  table.usual = table.sweep.points[1];
  SweptPoint between = table.usual;
  between.values.clear();
  between.step_time -= 50'000'000;
  between.throughput = 64 / 2.05;
  SweptPoint worse = between;
  worse.throughput = 64 / 2.2;
  table.by_hand = {{.fields = {{.field = "strategy.data", .from = "2", .to = "1"}}, .point = worse},
                   {.fields = {{.field = "strategy.tensor", .from = "4", .to = "8"}}, .point = between}};
  table.others = {{.change = "1 GB more memory of each GPU", .best = table.sweep.points[0], .value = 2.0 / 64},
                  {.change = "twice the bandwidth of NVLink",
                   .best = table.sweep.points[1],
                   .value = 1.0 / 64,
                   .gap = 0.1,
                   .is_same_point = false},
                  {.change = "workload.batch=1", .problem = "does not divide"}};
  return table;
}

TEST(PlanTable, SaysWhatToChangeFirst) {
  const PlanTable table = changed_plan();
  EXPECT_THAT(plan_text(table), HasSubstr("\nby hand, change first: tensor 8: 2.050 s\n"));
  PlanTable none = table;
  none.by_hand.pop_back();
  none.by_hand.push_back(none.by_hand.front());
  EXPECT_THAT(plan_text(none), HasSubstr("\nno single one of its differences from the best makes it better\n"));
}

TEST(PlanTable, SaysWhatOtherMachinesWouldGive) {
  EXPECT_THAT(plan_text(changed_plan()),
              HasSubstr("\nwith 1 GB more memory of each GPU: 2.000 s, 0.0 % better, at the same point\n"
                        "with twice the bandwidth of NVLink: 2.100 s, at least 100.0 % better, at data 2, tensor 4\n"
                        "with workload.batch=1: does not divide\n"));
  PlanTable table = changed_plan();
  table.others.resize(1);
  table.others[0].value = 3.0 / 64;
  EXPECT_THAT(plan_text(table),
              HasSubstr("with 1 GB more memory of each GPU: 2.000 s, 50.0 % worse, at the same point"));
}

TEST(PlanTable, AsJsonHasChanges) {
  const nlohmann::ordered_json json = plan_to_json(changed_plan());
  EXPECT_EQ(json["by_hand"][1]["fields"][0]["to"], "8");
  EXPECT_EQ(json["what_if"][1]["same_point"], false);
  EXPECT_EQ(json["what_if"][2]["problem"], "does not divide");
  EXPECT_FALSE(plan_to_json(small_plan()).contains("what_if"));
}

TEST(Page, OfAPlanShowsChanges) {
  const std::string page = page_of(plan_to_json(changed_plan()), "plan");
  EXPECT_THAT(page, HasSubstr("<h2>Changes</h2>"));
  EXPECT_THAT(page, HasSubstr("the scenario as it is"));
  EXPECT_THAT(page, HasSubstr("with strategy.tensor 8"));
  EXPECT_THAT(page, HasSubstr("the best with twice the bandwidth of NVLink"));
  EXPECT_THAT(page_of(plan_to_json(small_plan()), "plan"), Not(HasSubstr("<h2>Changes</h2>")));
}

TEST(Page, OfAPlanShowsTheSearch) {
  nlohmann::ordered_json document = plan_to_json(small_plan());
  const std::string page = page_of(document, "plan");
  EXPECT_THAT(page, HasSubstr("which: the best of 4 points for time"));
  EXPECT_THAT(page, HasSubstr("strategy.data 1, strategy.tensor 8: 2.000 s a step; no point of this space is better"));
  EXPECT_THAT(page, HasSubstr("<h2>The search</h2>"));
  EXPECT_THAT(page, HasSubstr("<h2>Time against memory</h2>"));
  document["gap"] = 0.25;
  EXPECT_THAT(page_of(document, "plan"), HasSubstr("no point of this space is better by more than 25.0 %"));
  document["gap"] = nullptr;
  EXPECT_THAT(page_of(document, "plan"), HasSubstr("of some points nothing is known"));
  document["best"] = {9};
  EXPECT_THROW(page_of(document, "plan"), InputError) << "there is no such point";
}

}  // namespace
}  // namespace tandem
