// Pages of sweeps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "reports/base/json_fields.h"
#include "reports/pages/page.h"
#include "reports/run/report_json.h"
#include "tests/reports/testing.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

using testing::HasSubstr;
using Json = nlohmann::ordered_json;

Json point(int devices, const std::string& strategy, double throughput) {
  return {{"values", {{"devices.per_worker", std::to_string(devices)}, {"strategy.name", strategy}}},
          {"state", "done"},
          {"strategy", strategy},
          {"devices", devices},
          {"throughput", {{"value", throughput}, {"unit", "examples/s"}}},
          {"step_time_ns", 2000},
          {"per_step_ns",
           {{"compute", 1500},
            {"update", 100},
            {"exposed_input", 0},
            {"exposed_communication", 300},
            {"other", 0},
            {"idle", 100},
            {"input", 0},
            {"communication", 400}}},
          {"limit", "compute"}};
}

Json sweep_document() {
  Json document = document_of("sweep");
  document["scenario"] = "which";
  document["engine"] = "sim";
  document["fields"] = {"devices.per_worker", "strategy.name"};
  document["best"] = 3;
  document["pareto_front"] = {0, 3};
  document["crossings"] = {{{"field", "devices"}, {"below", "a"}, {"above", "b"}, {"from", 1}, {"to", 2}, {"at", 1.5}}};
  document["points"] = {point(1, "a", 100), point(1, "b", 90), point(2, "a", 150), point(2, "b", 180)};
  document["points"].push_back({{"values", {{"devices.per_worker", "4"}, {"strategy.name", "a"}}},
                                {"state", "does not fit"},
                                {"problem", "needs 90 GB"}});
  return document;
}

TEST(Page, OfASweepShowsScalingTheFrontTwoFieldsAndWhatFailed) {
  const std::string page = page_of(sweep_document(), "sweep");
  EXPECT_THAT(page, HasSubstr("fastest: 180 examples/s with devices.per_worker 2, strategy.name b"));
  EXPECT_THAT(page,
              HasSubstr("<tr><th scope=\"row\">a</th><td>2</td><td>150</td><td>75.0 %</td><td>compute</td></tr>"));
  for (const char* heading : {"Scaling", "Throughput against devices", "Two fields", "What limits the fastest points",
                              "Crossings", "Points without a result"}) {
    EXPECT_THAT(page, HasSubstr(std::string("<h2>") + heading + "</h2>"));
  }
  EXPECT_THAT(page, HasSubstr("needs 90 GB"));
}

TEST(Page, OfASweepShowsTheEfficiencyAndWhatLimitsItBelowTheAxis) {
  Json document = sweep_document();
  document["points"][2]["limit"] = "communication";
  const std::string page = page_of(document, "sweep");
  EXPECT_THAT(page, HasSubstr("<title>Efficiency by number of devices, and what limits it</title>"));
  EXPECT_THAT(page, HasSubstr("<title>a: 2, 75 %</title>"));
  EXPECT_THAT(page, HasSubstr("class=\"communication soft\"><title>a, 2: communication</title>"));
  EXPECT_THAT(page, HasSubstr("class=\"compute soft\"><title>b, 2: compute</title>"));
  EXPECT_THAT(page, HasSubstr("class=\"small\">communication</text>"));
}

// Eight devices of one machine are no multiple of four of another.
TEST(Page, OfASweepOverMachinesHasACurveForEach) {
  Json document = sweep_document();
  document["fields"] = {"topology.cluster.node", "topology.cluster.workers"};
  document["points"] = Json::array();
  for (const auto& [machine, throughput] : {std::pair("h100", 100.0), {"b200", 300.0}}) {
    for (const int workers : {1, 2}) {
      Json one = point(workers, "a", throughput * workers);
      one["values"] = {{"topology.cluster.node", machine}, {"topology.cluster.workers", std::to_string(workers)}};
      document["points"].push_back(one);
    }
  }
  const std::string page = page_of(document, "sweep");
  for (const char* machine : {"h100", "b200"}) {
    EXPECT_THAT(page, HasSubstr(std::string("<title>a, ") + machine + ": 2, 100 %</title>"));
  }
}

TEST(Page, OfASweepWithPricesShowsTheFrontOfCost) {
  Json document = sweep_document();
  document["cost_front"] = {3};
  for (Json& one : document["points"]) {
    if (one["state"] != "done") continue;
    one["rates"] = {{"cost_per_unit", 2e-6}};
    one["currency"] = "$";
  }
  const std::string page = page_of(document, "sweep");
  EXPECT_THAT(page, HasSubstr("<h2>Throughput against cost</h2>"));
  EXPECT_THAT(page, HasSubstr("<td>2.00 $</td>"));
  document["cost_front"] = {9};
  EXPECT_THROW(page_of(document, "sweep"), InputError) << "there is no such point";
}

TEST(Page, OfALargeSweepHasItsFastestPointsAndItsFront) {
  Json document = sweep_document();
  document["points"] = Json::array();
  for (int i = 1; i <= 20'000; ++i) document["points"].push_back(point(i % 64 + 1, "a", i));
  document["points"][5]["devices"] = 1;
  document["pareto_front"] = {5, 19'999};
  const std::string page = page_of(document, "sweep");
  EXPECT_LT(page.size(), 1'000'000u);
  EXPECT_THAT(page, HasSubstr("Figures and tables are of all 20000 points. The page draws 1000 as dots"));
  EXPECT_THAT(page, HasSubstr("which: 20000 points"));
  EXPECT_THAT(page, HasSubstr("<td>64</td><td>1.997e+04</td>")) << "the best of each number of devices, of all points";
}

TEST(Page, OfASweepWithAFrontOfThousandsKeepsSome) {
  Json document = sweep_document();
  document["points"] = Json::array();
  document["pareto_front"] = Json::array();
  for (int i = 1; i <= 3'000; ++i) {
    document["points"].push_back(point(i, "a", i));
    document["pareto_front"].push_back(i - 1);
  }
  EXPECT_THAT(page_of(document, "sweep"), HasSubstr("all 3000 points. The page draws 1000 as dots"));
}

TEST(Page, OfASweepTakesTheUnitOfAPointWithAResult) {
  Json document = sweep_document();
  std::swap(document["points"][0], document["points"][4]);
  document["pareto_front"] = {4, 3};
  const std::string page = page_of(document, "sweep");
  EXPECT_THAT(page, HasSubstr("throughput, examples/s"));
  EXPECT_THAT(page, HasSubstr("The best throughput (examples/s)"));
}

TEST(Page, OfASweepThatIsWrongSaysWhere) {
  Json document = sweep_document();
  document["pareto_front"] = {7};
  document["points"][1]["values"] = Json::object();
  try {
    page_of(document, "sweep.json");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("sweep.json: points: have different fields"));
  }
}

}  // namespace
}  // namespace tandem
