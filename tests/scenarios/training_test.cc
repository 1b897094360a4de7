// What training learns does not depend on the number of replicas or on the world, and simulated times answer to what
// the machine and the job are.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "reports/run/report_json.h"
#include "tests/scenarios/running.h"
#include "topologies/readers/topology_yaml.h"

namespace tandem {
namespace {

std::string example(const std::string& name) {
  return TANDEM_SOURCE_DIR "/scenarios/examples/" + name + ".yaml";
}

Scenario example_digits(const std::string& strategy, int replicas, int steps) {
  Scenario scenario = load_scenario(example("digits"));
  scenario.strategy.name = strategy;
  scenario.devices.per_worker = replicas;
  scenario.steps = steps;
  scenario.warmup_steps = 2;
  return scenario;
}

TEST(Digits, LearnsTheSameWithOneDeviceAndWithTwoReplicas) {
  const Report one = run_scenario(example_digits("one_device", 1, 60)).report;
  EXPECT_GT(one.metrics.at("test_accuracy"), 0.9);
  EXPECT_LT(one.loss.back(), one.loss.front() / 10);
  for (const char* operations : {"nccl", "hierarchical_copy", "reduction_to_one_device"}) {
    Scenario scenario = example_digits("mirrored", 2, 60);
    scenario.strategy.cross_device_ops = operations;
    const Report two = run_scenario(scenario).report;
    expect_equal_losses(two.loss, one.loss);
    EXPECT_GT(two.metrics.at("test_accuracy"), 0.9);
  }
}

class SimulatedDigits : public testing::TestWithParam<int> {};

TEST_P(SimulatedDigits, LearnsTheSame) {
  const Report one = run_scenario(example_digits("one_device", 1, 60)).report;
  const Report many = run_scenario(on_simulated_gpus(example_digits("mirrored", GetParam(), 60))).report;
  EXPECT_EQ(many.replicas, GetParam());
  expect_equal_losses(many.loss, one.loss);
  EXPECT_GT(many.metrics.at("test_accuracy"), 0.9);
}
INSTANTIATE_TEST_SUITE_P(Replicas, SimulatedDigits, testing::Values(2, 8, 64));

TEST(Digits, UnevenBatchesCountEveryExampleOnce) {
  const Report one = run_scenario(example_digits("one_device", 1, 6)).report;
  expect_equal_losses(run_scenario(example_digits("mirrored", 3, 6)).report.loss, one.loss);
}

Nanoseconds median_step_ns(const Scenario& scenario) {
  return run_scenario(scenario).report.summary.step_time.median;
}

// ResNet-50 on eight GPUs, with the model of a link or device changed.
Scenario resnet_with(const std::string& overrides) {
  Scenario scenario = load_scenario(example("resnet50-hgx-h100"));
  scenario.topology = std::make_shared<const Topology>(parse_topology_yaml(
      "schema_version: 1\nname: changed\ncluster:\n  node: hgx-h100\n  workers: 1\n" + overrides, "test.yaml"));
  return scenario;
}

TEST(Simulation, RepeatsToTheByte) {
  const Scenario scenario = load_scenario(example("resnet50-hgx-h100"));
  EXPECT_EQ(report_to_json(run_scenario(scenario).report).dump(), report_to_json(run_scenario(scenario).report).dump());
}

TEST(Simulation, AnswersToTheMachineAndTheJob) {
  const Nanoseconds usual = median_step_ns(resnet_with(""));
  EXPECT_GT(median_step_ns(resnet_with("  overrides: {nvlink: {bandwidth: 5GB/s}}\n")), usual);
  EXPECT_LE(median_step_ns(resnet_with("  overrides: {nvlink: {bandwidth: 900GB/s}}\n")), usual);
  EXPECT_GT(median_step_ns(resnet_with("  overrides: {nvlink: {latency: 1ms}}\n")), usual);
  EXPECT_GT(median_step_ns(resnet_with(
                "  overrides: {gpu: {peak_flops: {f16: 100TFLOPS, bf16: 100TFLOPS}, memory_bandwidth: 1TB/s}}\n")),
            usual);
  Scenario larger = resnet_with("");
  larger.workload.batch *= 2;
  EXPECT_GT(median_step_ns(larger), usual);
}

TEST(Simulation, OverlapHidesCommunication) {
  Scenario scenario = resnet_with("  overrides: {nvlink: {bandwidth: 20GB/s}}\n");
  const Report with = run_scenario(scenario).report;
  std::get<LayersSettings>(scenario.workload.kind).overlap = false;
  const Report without = run_scenario(scenario).report;
  EXPECT_LT(with.summary.per_step.exposed_communication, without.summary.per_step.exposed_communication);
  EXPECT_LT(with.summary.step_time.median, without.summary.step_time.median);
}

TEST(Layers, RunForRealAndSimulated) {
  Scenario scenario = load_scenario(example("layers-small"));
  scenario.steps = 4;
  scenario.warmup_steps = 1;
  const Report real = run_scenario(scenario).report;
  EXPECT_GT(real.summary.per_step.compute, 0);
  EXPECT_FALSE(real.summary.collectives.empty());
  scenario.engine.name = "sim";
  scenario.topology = std::make_shared<const Topology>(make_host(2));
  const Report simulated = run_scenario(scenario).report;
  EXPECT_EQ(simulated.summary.collectives.size(), real.summary.collectives.size());
}

TEST(Runner, RefusesWhatTheEngineLacks) {
  Scenario scenario = load_scenario(example("digits"));
  scenario.engine.name = "simm";
  EXPECT_THROW(run_scenario(scenario), UnavailableError);
  scenario = load_scenario(example("resnet50-hgx-h100"));
  scenario.topology = std::make_shared<const Topology>(make_cluster("hgx-h100", 2));
  EXPECT_THROW(run_scenario(scenario), InputError);
}

}  // namespace
}  // namespace tandem
