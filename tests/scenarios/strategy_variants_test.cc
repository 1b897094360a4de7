// Which strategies a comparison of all of them runs, on which tasks.
#include "scenarios/reading/strategy_variants.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/job/job.h"
#include "tests/scenarios/running.h"

namespace tandem {
namespace {

Scenario digits_of(const std::string& strategy = "{name: mirrored}") {
  return read_scenario("workload: {kind: mlp, hidden: [64, 32], batch: 64}\nstrategy: " + strategy +
                       "\ndevices: {per_worker: 2}\nsteps: 3\n");
}

// "mirrored 1x2": workers x devices of each, and "+1" for a server.
std::vector<std::string> shown(const std::vector<StrategyVariant>& variants) {
  std::vector<std::string> texts;
  for (const StrategyVariant& variant : variants) {
    std::string text = variant.strategy;
    if (variant.cross_device_ops != "auto") text += "/" + variant.cross_device_ops;
    if (variant.scenario) {
      const Scenario& scenario = *variant.scenario;
      EXPECT_EQ(scenario.strategy.name, variant.strategy);
      EXPECT_EQ(training_devices(scenario), variant.devices);
      text += fmt::format(" {}x{}", training_workers(scenario), scenario.devices.per_worker);
      if (parameter_servers(scenario) > 0) text += fmt::format("+{}", parameter_servers(scenario));
    } else {
      text += " refused";
    }
    texts.push_back(std::move(text));
  }
  return texts;
}

TEST(StrategyVariants, OneDeviceIsForStrategiesOfOneDevice) {
  EXPECT_THAT(shown(strategy_variants(digits_of(), std::vector{1}, {})), testing::ElementsAre("one_device 1x1"));
}

TEST(StrategyVariants, EveryOtherStrategyHasAllDevicesOrWorkersForThem) {
  EXPECT_THAT(
      shown(strategy_variants(digits_of(), std::vector{2}, {})),
      testing::ElementsAre("central_storage 1x2", "fully_sharded 1x2", "mirrored 1x2", "multi_worker_mirrored 2x1",
                           "parameter_server 2x1+1", "pipeline_parallel 1x2", "tensor_parallel 1x2"));
  EXPECT_THAT(shown(strategy_variants(digits_of(), std::vector{3}, {})),
              testing::IsSupersetOf({"multi_worker_mirrored 3x1", "parameter_server 3x1+1", "pipeline_parallel 1x3"}));
}

TEST(StrategyVariants, AMeshHasSeveralAxes) {
  const auto mesh_of = [](int devices) {
    for (const StrategyVariant& variant : strategy_variants(digits_of(), std::vector{devices}, {})) {
      if (variant.strategy == "mesh") return variant.scenario->strategy.mesh;
    }
    return MeshSettings{.data = 0};
  };
  EXPECT_EQ(mesh_of(2).data, 0) << "data parallel, which fully_sharded and mirrored are";
  EXPECT_EQ(mesh_of(3).data, 0);
  const MeshSettings four = mesh_of(4), eight = mesh_of(8), twelve = mesh_of(12);
  EXPECT_EQ(std::tuple(four.data, four.tensor, four.pipeline, four.micro_batches), std::tuple(2, 2, 1, 1));
  EXPECT_EQ(std::tuple(eight.data, eight.tensor, eight.pipeline, eight.micro_batches), std::tuple(2, 2, 2, 4));
  EXPECT_EQ(std::tuple(twelve.data, twelve.tensor, twelve.pipeline), std::tuple(6, 2, 1));
}

TEST(StrategyVariants, WhatCannotBeSaysWhy) {
  const std::vector<StrategyVariant> variants = strategy_variants(digits_of(), std::vector{4}, {});
  const auto pipeline = std::ranges::find(variants, "pipeline_parallel", &StrategyVariant::strategy);
  ASSERT_NE(pipeline, variants.end());
  EXPECT_FALSE(pipeline->scenario);
  EXPECT_EQ(pipeline->refusal, "3 layers cannot form 4 pipeline stages");
}

TEST(StrategyVariants, TheScenariosOwnStrategyKeepsItsSettings) {
  for (const StrategyVariant& variant :
       strategy_variants(digits_of("{name: mirrored, num_packs: 3}"), std::vector{2}, {})) {
    EXPECT_EQ(variant.scenario->strategy.num_packs, variant.strategy == "mirrored" ? 3 : 1) << variant.strategy;
    EXPECT_FALSE(variant.scenario->hash.empty());
  }
}

TEST(StrategyVariants, WaysToCombineAreForStrategiesThatCanChoose) {
  EXPECT_THAT(shown(strategy_variants(digits_of(), std::vector{2}, {"collective", "hierarchical_copy"})),
              testing::ElementsAre("central_storage 1x2", "fully_sharded 1x2", "mirrored/collective 1x2",
                                   "mirrored/hierarchical_copy 1x2", "multi_worker_mirrored 2x1",
                                   "parameter_server 2x1+1", "pipeline_parallel 1x2", "tensor_parallel 1x2"));
}

// Each rank is a worker, or the parameter server.
TEST(StrategyVariants, TheRanksOfALaunchAreTheWorkers) {
  EXPECT_THAT(shown(strategy_variants(digits_of(), std::vector{2, 4}, {}, 2)),
              testing::ElementsAre("fully_sharded 2x1", "multi_worker_mirrored 2x1", "parameter_server 1x2+1",
                                   "pipeline_parallel 2x1", "tensor_parallel 2x1", "fully_sharded 2x2", "mesh 2x2",
                                   "multi_worker_mirrored 2x2", "parameter_server 1x4+1", "pipeline_parallel refused",
                                   "tensor_parallel 2x2"));
  EXPECT_THAT(shown(strategy_variants(digits_of(), std::vector{3}, {}, 2)),
              testing::ElementsAre("parameter_server 1x3+1"));
}

}  // namespace
}  // namespace tandem
