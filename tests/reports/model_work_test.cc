#include "reports/run/model_work.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "reports/run/report_json.h"
#include "reports/run/report_text.h"
#include "reports/sweep/sweep_json.h"
#include "reports/sweep/sweep_table.h"
#include "tests/reports/testing.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// 64 sequences in 2 ms: 32,000 a second.
Report priced_report() {
  Report report = simulated_report();
  report.throughput_unit = "sequences/s";
  report.work = ModelWork{
      .flops_per_unit = 1e9, .tokens_per_unit = 100, .devices = 4, .peak_flops_per_s = 128e12, .dtype = "bf16"};
  report.price = JobPrice{.per_hour = 36, .currency = "$", .machines = 2, .units_per_epoch = 1e6};
  return report;
}

TEST(RunRates, FollowFromThroughputWorkAndPrice) {
  const RunRates rates = rates_of(priced_report());
  EXPECT_DOUBLE_EQ(rates.model_flops_per_s, 32e12);
  EXPECT_DOUBLE_EQ(rates.model_flops_per_s_per_device, 8e12);
  EXPECT_DOUBLE_EQ(rates.mfu, 0.25);
  EXPECT_DOUBLE_EQ(rates.flops_per_step, 64e9);
  EXPECT_DOUBLE_EQ(rates.tokens_per_s, 3.2e6);
  EXPECT_DOUBLE_EQ(rates.tokens_per_s_per_device, 0.8e6);
  EXPECT_DOUBLE_EQ(rates.cost_per_step, 0.02 * 2e-3) << "two machines cost 0.02 $ a second";
  EXPECT_DOUBLE_EQ(rates.cost_per_unit, 0.02 / 32000);
  EXPECT_DOUBLE_EQ(rates.cost_per_token, 0.02 / 3.2e6);
  EXPECT_DOUBLE_EQ(rates.cost_per_epoch, 1e6 * 0.02 / 32000);
}

TEST(RunRates, OfEnergyFollowFromThePowerOfMachines) {
  Report report = priced_report();
  report.power = JobPower{.of_machine_w = 8000, .machines = 2};
  EXPECT_DOUBLE_EQ(rates_of(report).energy_per_step_j, 16000 * 2e-3);
  EXPECT_DOUBLE_EQ(rates_of(report).energy_per_unit_j, 0.5);
  const std::vector<ShownRate> shown = shown_rates(report);
  EXPECT_EQ(shown.back().name, "energy");
  EXPECT_EQ(shown.back().value, "0.009 Wh");
  EXPECT_EQ(shown.back().detail, "per step; 138.9 Wh per million sequences (2 machines at 8.000 kW)");
}

TEST(RunRates, AreUnknownWithoutWhatTheyRestOn) {
  Report report = priced_report();
  report.work->peak_flops_per_s = 0;
  EXPECT_EQ(rates_of(report).mfu, 0);
  report.work.reset();
  EXPECT_EQ(rates_of(report).cost_per_token, 0);
  EXPECT_GT(rates_of(report).cost_per_step, 0);
  report.price.reset();
  EXPECT_EQ(rates_of(report).cost_per_step, 0);
  EXPECT_THAT(shown_rates(report), testing::IsEmpty());
}

TEST(RunRates, AreInTheTextAndTheDocument) {
  const Report report = priced_report();
  const std::string text = report_text(report);
  EXPECT_THAT(text, testing::ContainsRegex("tokens +3200.0 k tokens/s +800.0 k tokens/s a device"));
  EXPECT_THAT(text,
              testing::ContainsRegex("model flops +32.00 TFLOPS +8.000 TFLOPS a device, 25.0 % of its peak in bf16"));
  EXPECT_THAT(
      text, testing::ContainsRegex("cost +0.0000400 [$] +per step; 0.625 [$] per million sequences, 0.00625 [$] per"));
  EXPECT_THAT(text, HasSubstr("(2 machines at 36 $/h)"));
  const auto document = report_to_json(report);
  EXPECT_DOUBLE_EQ(document["rates"]["mfu"], 0.25);
  const Report again = report_from_json(document.dump(), "report");
  EXPECT_EQ(again.work, report.work);
  EXPECT_EQ(again.price, report.price);
  EXPECT_EQ(report_to_json(again).dump(), document.dump());
}

SweepTable swept(const std::vector<Report>& reports) {
  SweepTable table{.scenario = "s", .engine = "sim", .fields = {"topology"}, .points = {}};
  for (const Report& report : reports) {
    SweptPoint& point = table.points.emplace_back(swept_point(report, 8));
    point.values = {{"topology", report.topology}};
  }
  return table;
}

// Twice as fast at three times the price; half as fast at the same price.
SweepTable three_machines() {
  Report fast = priced_report(), slow = priced_report();
  fast.summary.step_time.mean /= 2;
  fast.price->per_hour *= 3;
  slow.summary.step_time.mean *= 2;
  return swept({priced_report(), fast, slow});
}

TEST(CostFront, HasThePointsThanWhichNoneIsFasterForLess) {
  const SweepTable table = three_machines();
  EXPECT_EQ(table.currency(), "$");
  EXPECT_THAT(table.cost_front(), ElementsAre(0, 1));
  EXPECT_THAT(table.pareto_front(), ElementsAre(1));
  EXPECT_THAT(sweep_text(table), HasSubstr("+ on the front of cost against throughput: 2 points\n"));
  EXPECT_THAT(sweep_text(table), HasSubstr("0.937 $"));
  const auto document = sweep_to_json(table);
  EXPECT_EQ(document["cost_front"].dump(), "[0,1]");
  const SweepTable again = sweep_from_json(document, JsonOrigin("sweep", document.dump()));
  EXPECT_EQ(sweep_to_json(again).dump(), document.dump());
  EXPECT_THAT(sweep_csv(table), HasSubstr(",mfu,flops_per_step,"));
}

TEST(CostFront, NeedsOneCurrencyForAll) {
  Report other = priced_report(), free = priced_report();
  other.price->currency = "EUR";
  free.price.reset();
  EXPECT_THAT(swept({priced_report(), other}).cost_front(), testing::IsEmpty());
  EXPECT_THAT(swept({priced_report(), free}).cost_front(), testing::IsEmpty());
  EXPECT_FALSE(sweep_to_json(swept({free})).contains("cost_front"));
}

}  // namespace
}  // namespace tandem
