#include "scenarios/run/assumptions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "reports/run/report_json.h"
#include "reports/run/report_text.h"
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
  const std::vector<Assumption> all = assumptions_of(scenario, result);
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
  EXPECT_EQ(assumptions_of(scenario, result), all) << "they are deterministic";

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
  const std::vector<Assumption> all = assumptions_of(scenario, run_scenario(scenario));
  ASSERT_FALSE(all.empty());
  for (const Assumption& one : all) {
    EXPECT_THAT(one.figure, testing::Not(HasSubstr("memory_latency")));
    EXPECT_THAT(one.figure, testing::Not(HasSubstr("sustained_quantised"))) << "nothing is quantised";
  }
}

TEST(Assumptions, OfAMeasuredRunAreNone) {
  const Scenario scenario = read_scenario(
      "workload: {kind: mlp, hidden: [8], batch: 8}\nstrategy: {name: one_device}\nengine: {name: cpu}\nsteps: 2\n");
  EXPECT_THAT(assumptions_of(scenario, run_scenario(scenario)), testing::IsEmpty());
}

}  // namespace
}  // namespace tandem
