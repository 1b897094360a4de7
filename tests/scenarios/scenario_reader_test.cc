// Reading scenarios: defaults, what each key becomes, and the hash of the content.
#include <gtest/gtest.h>

#include "scenarios/reading/content_hash.h"
#include "tests/scenarios/running.h"

namespace tandem {
namespace {

TEST(ScenarioReader, WhatIsLeftOutHasItsDefault) {
  const Scenario scenario = read_scenario("workload: {kind: mlp, batch: 8}\nsteps: 3\n");
  EXPECT_EQ(scenario.name, "in_memory");
  const auto& mlp = std::get<MlpSettings>(scenario.workload.kind);
  EXPECT_EQ(mlp.rows->rows(), 1797);
  EXPECT_EQ(mlp.hidden, (std::vector<int>{512, 512}));
  EXPECT_EQ(mlp.learning_rate, 0.1);
  EXPECT_EQ(mlp.momentum, 0);
  EXPECT_EQ(mlp.seed, 1u);
  EXPECT_EQ(scenario.strategy.name, "mirrored");
  EXPECT_EQ(scenario.strategy.cross_device_ops, "auto");
  EXPECT_EQ(scenario.engine.name, "cpu");
  EXPECT_EQ(StrategySettings{}.name, "mirrored") << "of a scenario made in memory";
  EXPECT_EQ(EngineSettings{}.name, "cpu");
  EXPECT_FALSE(scenario.engine.values);
  EXPECT_EQ(scenario.topology, nullptr) << "this machine";
  EXPECT_EQ(scenario.devices.type, DeviceType::cpu);
  EXPECT_EQ(scenario.devices.per_worker, 1);
  EXPECT_EQ(scenario.steps, 3);
  EXPECT_EQ(scenario.warmup_steps, 0);
}

TEST(ScenarioReader, LayersHaveTheirDefaults) {
  const Scenario scenario = read_scenario("workload: {kind: layers, batch: 8, model: layers_small}\nsteps: 3\n");
  const auto& layers = std::get<LayersSettings>(scenario.workload.kind);
  EXPECT_EQ(layers.model.name, "layers_small");
  EXPECT_EQ(layers.dtype, DType::f32);
  EXPECT_EQ(layers.bucket_bytes, 25'000'000);
  EXPECT_TRUE(layers.overlap);
}

TEST(ScenarioReader, AMachineWithGpusIsUsedWhole) {
  const Scenario scenario = read_scenario("workload: {kind: mlp, batch: 8}\ntopology: hgx-h100\nsteps: 3\n");
  EXPECT_EQ(scenario.devices.type, DeviceType::gpu);
  EXPECT_EQ(scenario.devices.per_worker, 8);
  const Scenario one =
      read_scenario("workload: {kind: mlp, batch: 8}\ntopology: hgx-h100\nstrategy: {name: one_device}\nsteps: 3\n");
  EXPECT_EQ(one.devices.per_worker, 1);
}

TEST(ScenarioReader, AnEngineOfThisMachinesGpusNeedsNoTopology) {
  const Scenario scenario = read_scenario("workload: {kind: mlp, batch: 8}\nengine: {name: cuda}\nsteps: 3\n");
  EXPECT_EQ(scenario.devices.type, DeviceType::gpu);
  EXPECT_EQ(scenario.devices.per_worker, 1);
  EXPECT_EQ(scenario.topology, nullptr);
}

TEST(ScenarioReader, ReadsEveryKey) {
  const Scenario scenario = load_scenario(TANDEM_SOURCE_DIR "/tests/scenarios/good/every_mlp_key.yaml");
  EXPECT_EQ(scenario.topology->worker_count(), 2);
  EXPECT_EQ(scenario.topology->name(), "two-nodes");
  EXPECT_EQ(scenario.strategy.cross_device_ops, "hierarchical_copy");
  EXPECT_EQ(scenario.strategy.num_packs, 0);
  EXPECT_EQ(scenario.engine.values, ValueMode::real);
  EXPECT_EQ(scenario.engine.collectives, CollectiveFidelity::message);
  EXPECT_EQ(scenario.expect.max_step_time_s, 1.5e-3);
  EXPECT_EQ(scenario.expect.max_exposed_communication, 0);
  EXPECT_EQ(std::get<MlpSettings>(scenario.workload.kind).learning_rate, 1e-3);
}

TEST(ScenarioReader, TheHashIsOfTheContent) {
  const std::string hash = read_scenario("workload: {kind: mlp, batch: 8}\nsteps: 3\n").hash;
  EXPECT_EQ(hash.size(), 16u);
  EXPECT_EQ(hash, read_scenario("# a comment\nsteps: 3\nworkload:\n  batch: 8\n  kind: mlp\n").hash) << "layout";
  EXPECT_NE(hash, read_scenario("workload: {kind: mlp, batch: 9}\nsteps: 3\n").hash);
  EXPECT_NE(hash, read_scenario("workload: {kind: mlp, batch: 8, data: files/rows.csv}\nsteps: 3\n").hash);
  const std::string with_topology = "workload: {kind: mlp, batch: 8}\nsteps: 3\n";
  EXPECT_NE(read_scenario(with_topology + "topology: {cluster: {node: hgx-h100, workers: 1}}\n").hash,
            read_scenario(with_topology +
                          "topology: {cluster: {node: hgx-h100, workers: 1, overrides: {nvlink: {latency: 1us}}}}\n")
                .hash);
}

TEST(ScenarioReader, TextThatIsNotUtf8HasAPlace) {
  try {
    read_scenario("workload: {kind: mlp, batch: 8}\nsteps: 3\nname: \xC3\xA9t\xE9\n");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.diagnostics().front().line, 4) << "read_scenario() puts one before";
    EXPECT_EQ(error.diagnostics().front().column, 9);
    EXPECT_EQ(error.diagnostics().front().message, "not UTF-8; save the file in that encoding");
  }
  for (const char* broken : {"\xC0\xAF", "\xE0\x80\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE2\x82", "\x80"}) {
    EXPECT_THROW(read_scenario(std::string("steps: 3\nname: ") + broken + "\n"), InputError) << broken;
  }
}

TEST(ScenarioReader, TheHashOfALargeClusterHasAllThatDecidesItsTimes) {
  Scenario scenario = read_scenario(
      "workload: {kind: mlp, batch: 8}\nsteps: 3\nengine: {name: sim}\n"
      "topology: {cluster: {node: hgx-h100, workers: 5000}}\n");
  const Topology usual = *scenario.topology;
  const auto hash_with = [&](const auto& change) {
    auto topology = std::make_shared<Topology>(usual);
    change(*topology);
    scenario.topology = topology;
    return content_hash(scenario);
  };
  const std::string hash = hash_with([](Topology&) {});
  EXPECT_EQ(hash, hash_with([](Topology&) {}));
  EXPECT_NE(hash, hash_with([](Topology& topology) { topology.facts().p2p = false; }));
  EXPECT_NE(hash, hash_with([](Topology& topology) { topology.facts().exchanges_in_turn = true; }));
  EXPECT_NE(hash, hash_with([](Topology& topology) { topology.facts().share_spread = 0.5; }));
  EXPECT_NE(hash, hash_with([](Topology& topology) { topology.facts().nvlink_domain = 9; }));
  EXPECT_NE(hash, hash_with([](Topology& topology) { topology.facts().collectives = {{"all_reduce", 8, 1e6, 1e-3}}; }));
  EXPECT_NE(hash, hash_with([](Topology& topology) {
              const LinkIndex last = topology.machine_links() - 1;
              LinkModel slower = topology.link_model(last);
              slower.bandwidth_bytes_per_s.value /= 2;
              topology.set_link_model(last, std::make_shared<const LinkModel>(slower));
            }));
}

TEST(ScenarioReader, ProblemsFoundLaterHaveAPlace) {
  const Scenario scenario = read_scenario("workload:\n  kind: mlp\n  batch: 8\nsteps: 3\n");
  EXPECT_EQ(scenario.problem_at("workload.batch", "wrong").text(), scenario.file + ":4:10: workload.batch: wrong");
  EXPECT_EQ(scenario.problem_at("workload.seed", "wrong").text(), scenario.file + ":3:3: workload.seed: wrong")
      << "what is not there is shown at the map it is missing from";
}

TEST(ScenarioReader, AFileThatIsNotThereIsNamed) {
  try {
    load_scenario("no/such/scenario.yaml");
    FAIL() << "read";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "no/such/scenario.yaml: no such file");
  }
}

}  // namespace
}  // namespace tandem
