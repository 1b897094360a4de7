// What training learns does not depend on the number of replicas or on the world, and simulated times answer to what
// the machine and the job are.
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "reports/report_json.h"
#include "scenarios/runner.h"
#include "topologies/generators/cluster.h"
#include "topologies/readers/topology_yaml.h"

namespace tandem {
namespace {

std::string example(const std::string& name) {
  return TANDEM_SOURCE_DIR "/scenarios/examples/" + name + ".yaml";
}

Scenario digits(const std::string& strategy, int replicas, int steps) {
  Scenario scenario = load_scenario(example("digits"));
  scenario.strategy.name = strategy;
  scenario.devices.per_worker = replicas;
  scenario.steps = steps;
  scenario.warmup_steps = 2;
  return scenario;
}

// The same job on simulated GPUs that carry values; more replicas than GPUs share them, as logical devices.
Scenario on_simulated_gpus(Scenario scenario) {
  scenario.engine.name = "sim";
  scenario.engine.values = ValueMode::real;
  scenario.devices.type = DeviceType::gpu;
  scenario.topology = std::make_shared<const Topology>(make_cluster("dgx-a100", 1));
  return scenario;
}

void expect_equal_losses(const std::vector<double>& losses, const std::vector<double>& reference) {
  ASSERT_EQ(losses.size(), reference.size());
  for (std::size_t step = 0; step < losses.size(); ++step) {
    EXPECT_NEAR(losses[step] / reference[step], 1, 1e-5) << "step " << step;
  }
}

TEST(Digits, LearnsTheSameWithOneDeviceAndWithTwoReplicas) {
  const Report one = run_scenario(digits("one_device", 1, 60)).report;
  EXPECT_GT(one.metrics.at("test_accuracy"), 0.9);
  EXPECT_LT(one.loss.back(), one.loss.front() / 10);
  for (const char* operations : {"nccl", "hierarchical_copy", "reduction_to_one_device"}) {
    Scenario scenario = digits("mirrored", 2, 60);
    scenario.strategy.cross_device_ops = operations;
    const Report two = run_scenario(scenario).report;
    expect_equal_losses(two.loss, one.loss);
    EXPECT_GT(two.metrics.at("test_accuracy"), 0.9);
  }
}

class SimulatedDigits : public testing::TestWithParam<int> {};

TEST_P(SimulatedDigits, LearnsTheSame) {
  const Report one = run_scenario(digits("one_device", 1, 60)).report;
  const Report many = run_scenario(on_simulated_gpus(digits("mirrored", GetParam(), 60))).report;
  EXPECT_EQ(many.replicas, GetParam());
  expect_equal_losses(many.loss, one.loss);
  EXPECT_GT(many.metrics.at("test_accuracy"), 0.9);
}
INSTANTIATE_TEST_SUITE_P(Replicas, SimulatedDigits, testing::Values(2, 8, 64));

TEST(Digits, UnevenBatchesCountEveryExampleOnce) {
  const Report one = run_scenario(digits("one_device", 1, 6)).report;
  expect_equal_losses(run_scenario(digits("mirrored", 3, 6)).report.loss, one.loss);
}

Report simulate(const Scenario& scenario) {
  return run_scenario(scenario).report;
}

Nanoseconds step_time(const Scenario& scenario) {
  return simulate(scenario).summary.step_time.median;
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
  EXPECT_EQ(report_to_json(simulate(scenario)).dump(), report_to_json(simulate(scenario)).dump());
}

TEST(Simulation, AnswersToTheMachineAndTheJob) {
  const Nanoseconds usual = step_time(resnet_with(""));
  EXPECT_GT(step_time(resnet_with("  overrides: {nvlink: {bandwidth: 5GB/s}}\n")), usual);
  EXPECT_LE(step_time(resnet_with("  overrides: {nvlink: {bandwidth: 900GB/s}}\n")), usual);
  EXPECT_GT(step_time(resnet_with("  overrides: {nvlink: {latency: 1ms}}\n")), usual);
  EXPECT_GT(step_time(resnet_with(
                "  overrides: {gpu: {peak_flops: {f16: 100TFLOPS, bf16: 100TFLOPS}, memory_bandwidth: 1TB/s}}\n")),
            usual);
  Scenario larger = resnet_with("");
  larger.workload.batch *= 2;
  EXPECT_GT(step_time(larger), usual);
}

TEST(Simulation, OverlapHidesCommunication) {
  Scenario scenario = resnet_with("  overrides: {nvlink: {bandwidth: 20GB/s}}\n");
  const Report with = simulate(scenario);
  std::get<LayersSettings>(scenario.workload.kind).overlap = false;
  const Report without = simulate(scenario);
  EXPECT_LT(with.summary.per_step.exposed_communication, without.summary.per_step.exposed_communication);
  EXPECT_LT(with.summary.step_time.median, without.summary.step_time.median);
}

TEST(Layers, RunForRealAndSimulated) {
  Scenario scenario = load_scenario(example("layers-small"));
  scenario.steps = 4;
  scenario.warmup_steps = 1;
  const Report real = simulate(scenario);
  EXPECT_GT(real.summary.per_step.compute, 0);
  EXPECT_FALSE(real.summary.collectives.empty());
  RunOptions options;
  options.engine = "sim";
  options.topology = std::make_shared<const Topology>(make_host(2));
  const Report simulated = run_scenario(scenario, options).report;
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
