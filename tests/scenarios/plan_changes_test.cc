// What a plan says beside the best point: what to change first in the scenario as it is, and what better machines would
// give.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/plan/plan.h"
#include "scenarios/plan/what_if.h"
#include "tests/scenarios/running.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kManyTokens = 1024, kScarceTokens = 128;  // of few, gradients take long

constexpr const char* kSpace =
    "sweep: {values: {strategy.data: [2, 4, 16], strategy.tensor: [1, 4, 8], strategy.micro_batches: [1, 4], "
    "workload.activation_checkpointing: [false, true]}, where: [data * tensor == devices]}\n";

std::string text_of_job(const std::string& overrides = "", const std::string& machine = "hgx-h100",
                        int tokens = kManyTokens) {
  return fmt::format(
      "name: changes\n"
      "workload: {{kind: layers, model: gpt, sizes: {{layers: 8, hidden: 4096, heads: 32, tokens: {}}}, dtype: bf16, "
      "optimizer: adam, batch: 64, activation_checkpointing: true}}\n"
      "strategy: {{name: mesh, data: 2, tensor: 8, micro_batches: 4}}\nengine: {{name: sim}}\n"
      "topology: {{cluster: {{node: {}, workers: 2{}}}}}\n"
      "devices: {{type: gpu, workers: 2, per_worker: 8}}\nsteps: 2\nwarmup_steps: 1\n",
      tokens, machine, overrides);
}

PlanTable plan_of(const Scenario& scenario) {
  const PlanOptions options{.processes = 2, .wanted = 1};
  PlanTable table = planned_points(scenario, options);
  run_plan(scenario, options, table);
  return table;
}

PlanTable with_what_ifs(const std::vector<std::string>& words, int tokens = kManyTokens) {
  const Scenario scenario = read_scenario(text_of_job("", "hgx-h100", tokens) + kSpace);
  PlanTable table = plan_of(scenario);
  add_what_ifs(
      what_ifs(words, scenario), scenario, [](const WhatIf&, const Scenario& changed) { return plan_of(changed); },
      table);
  return table;
}

std::vector<std::string> fields_of(const HandChange& change) {
  std::vector<std::string> fields;
  for (const HandChange::Field& one : change.fields)
    fields.push_back(fmt::format("{} {} -> {}", one.field, one.from, one.to));
  return fields;
}

std::string refused_what_if(const std::string& word, const std::string& text) {
  try {
    what_ifs({word}, read_scenario(text));
  } catch (const InputError& error) {
    return error.diagnostics().front().text();
  }
  return "";
}

// The sizes of a mesh make sense together only: four replicas of eight devices are too many.
TEST(PlanChanges, ByHandAreSingleFieldsOrWhatGoesTogether) {
  const PlanTable table = plan_of(read_scenario(text_of_job() + kSpace));
  std::vector<std::vector<std::string>> changes;
  for (const HandChange& change : table.by_hand) changes.push_back(fields_of(change));
  EXPECT_THAT(changes, ElementsAre(ElementsAre("strategy.micro_batches 4 -> 1"),
                                   ElementsAre("workload.activation_checkpointing true -> false"),
                                   ElementsAre("strategy.data 2 -> 4", "strategy.tensor 8 -> 4")));
  for (const HandChange& change : table.by_hand) EXPECT_EQ(change.point.state, PointState::done);
  const std::vector<const HandChange*> first = table.first_changes();
  ASSERT_FALSE(first.empty());
  for (const HandChange* change : first) {
    EXPECT_LT(table.value(change->point), table.value(table.usual));
    EXPECT_GE(table.value(change->point), table.value(first.front()->point));
  }
  const Scenario kept = parse_scenario("schema_version: 1\n" + text_of_job(), "kept.yaml",
                                       {{"kept", "workload.activation_checkpointing", "false"}});
  EXPECT_NEAR(static_cast<double>(table.by_hand[1].point.step_time),
              static_cast<double>(run_scenario(kept, {.only_report = true}).report.summary.step_time.mean),
              kQuickError * static_cast<double>(table.by_hand[1].point.step_time));
}

TEST(PlanChanges, AFasterNetworkIsThatOfAnotherTopology) {
  const PlanTable table = with_what_ifs({"network"}, kScarceTokens);
  const PlanTable faster = plan_of(
      read_scenario(text_of_job(", overrides: {network: {bandwidth: 100GB/s}}", "hgx-h100", kScarceTokens) + kSpace));
  ASSERT_EQ(table.others.size(), 1U);
  EXPECT_EQ(table.others[0].problem, "");
  EXPECT_EQ(table.others[0].value, faster.value(faster.ranking().at(0)));
  EXPECT_LT(table.others[0].value, table.value(table.ranking().at(0)));
}

TEST(PlanChanges, OfTheMachineAreThree) {
  const PlanTable table = with_what_ifs({"machine", "workload.dtype=f16"});
  std::vector<std::string> changes;
  for (const OtherPlan& other : table.others) {
    changes.push_back(other.change);
    EXPECT_EQ(other.problem, "") << other.change;
    EXPECT_LE(other.value, table.value(table.ranking().at(0))) << other.change;
  }
  EXPECT_THAT(changes, ElementsAre("1 GB more memory of each GPU", "twice the bandwidth of the network",
                                   "twice the bandwidth of NVLink", "workload.dtype=f16"));
}

// What does not fit by less than a gigabyte fits with one more.
TEST(PlanChanges, MoreMemoryLetsMorePointsFit) {
  const std::string text = text_of_job() + kSpace;
  PlanTable table = plan_of(read_scenario(text));
  const double need = table.sweep.points[table.ranking().at(0)].memory->total();
  const Scenario scenario =
      read_scenario(text_of_job(fmt::format(", overrides: {{gpu: {{memory: {:.0f}B}}}}", need - 1e8)) + kSpace);
  PlanTable scarce = plan_of(scenario);
  add_what_ifs(
      what_ifs({"memory"}, scenario), scenario, [](const WhatIf&, const Scenario& changed) { return plan_of(changed); },
      scarce);
  ASSERT_EQ(scarce.others.size(), 1U);
  EXPECT_FALSE(scarce.others[0].is_same_point);
  EXPECT_EQ(scarce.others[0].value, table.value(table.ranking().at(0)));
  EXPECT_GT(scarce.value(scarce.ranking().at(0)), scarce.others[0].value);
  EXPECT_THAT(plan_text(scarce), HasSubstr("with 1 GB more memory of each GPU: "));
}

TEST(PlanChanges, AreRefusedWhereTheyMeanNothing) {
  EXPECT_THAT(refused_what_if("disk", text_of_job()), HasSubstr("expected memory, network, nvlink, machine"));
  EXPECT_THAT(refused_what_if("nvlink", text_of_job("", "pcie-8gpu")), HasSubstr("the topology has no NVLink"));
  EXPECT_THAT(
      refused_what_if(
          "memory",
          "name: here\nworkload: {kind: mlp, batch: 8}\nstrategy: {name: mirrored}\nsteps: 2\nwarmup_steps: 1\n"),
      HasSubstr("the scenario names no topology"));
  EXPECT_THAT(refused_what_if("network", text_of_job() + "sweep: {values: {topology.cluster.workers: [1, 2]}}\n"),
              HasSubstr("the space has several topologies"));
  EXPECT_EQ(what_ifs({"machine"}, read_scenario(text_of_job("", "pcie-8gpu"))).size(), 2U);
}

TEST(PlanChanges, OfKeysThatCannotBeChangedAreRefusedBeforeTheSearch) {
  EXPECT_THAT(refused_what_if("workload.dtype=f17", text_of_job()), HasSubstr("f17"));
  EXPECT_THAT(refused_what_if("workload.bathc=8", text_of_job()), HasSubstr("unknown key 'bathc'"));
  EXPECT_THAT(refused_what_if("strategy.tensor=2", text_of_job() + kSpace),
              HasSubstr("the space has values of strategy.tensor, among which the best is found"));
}

// A run may need up to a tenth more memory than there is, which no plan recommends.
TEST(PlanChanges, AScenarioThatNeedsSlightlyMoreMemoryIsNoStartForChanges) {
  const std::string space =
      "sweep: {values: {strategy.distributed_optimizer: [true], strategy.micro_batches: [4, 8]}}\n";
  const PlanTable table = plan_of(read_scenario(text_of_job() + space));
  ASSERT_EQ(table.usual.state, PointState::done);
  const double need = static_cast<double>(table.usual.memory->total());
  const PlanTable scarce = plan_of(
      read_scenario(text_of_job(fmt::format(", overrides: {{gpu: {{memory: {:.0f}B}}}}", 0.95 * need)) + space));
  EXPECT_EQ(scarce.usual.state, PointState::done);
  EXPECT_TRUE(scarce.by_hand.empty());
  EXPECT_THAT(plan_text(scarce), HasSubstr(" a step, with more memory than there"));
}

}  // namespace
}  // namespace tandem
