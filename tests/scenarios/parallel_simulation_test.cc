// What dividing a model costs and saves on simulated machines: relations that the ways of parallelism must show.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/engine.h"
#include "scenarios/workloads/workload.h"
#include "strategies/strategies.h"
#include "tests/scenarios/running.h"
#include "topologies/readers/topology_yaml.h"

namespace tandem {
namespace {

std::string layers(int count, int size) {
  std::string text;
  for (int i = 0; i < count; ++i) text += (i > 0 ? ", " : "") + std::to_string(size);
  return "[" + text + "]";
}

Scenario wide(const std::string& strategy, int batch, const std::string& machine = "node: dgx-a100",
              const std::string& hidden = layers(9, 4096)) {
  return parse_scenario("schema_version: 1\nworkload: {kind: mlp, hidden: " + hidden +
                            ", batch: " + std::to_string(batch) + ", momentum: 0.9}\nstrategy: " + strategy +
                            "\nengine: {name: sim}\ntopology: {cluster: {" + machine +
                            ", workers: 1}}\nsteps: 3\nwarmup_steps: 1\n",
                        "wide.yaml");
}

double step_time(const Scenario& scenario) {
  return static_cast<double>(run_unscaled(scenario).summary.step_time.median);
}

double slowdown_with_half_the_links(const std::string& strategy) {
  return step_time(wide(strategy, 2048, "node: dgx-a100, overrides: {nvlink: {bandwidth: 120GB/s}}")) /
         step_time(wide(strategy, 2048));
}

TEST(ParallelSimulation, HalfTheBandwidthHurtsPipelinesLeast) {
  const double pipeline = slowdown_with_half_the_links("{name: pipeline_parallel, micro_batches: 8}");
  EXPECT_GT(pipeline, 1);
  EXPECT_LT(pipeline, 1.05);
  EXPECT_GT(slowdown_with_half_the_links("{name: fully_sharded}"), pipeline);
  EXPECT_GT(slowdown_with_half_the_links("{name: tensor_parallel}"), pipeline);
}

// The largest memory of a device that trains replicas of the whole model.
double mirrored_peak_bytes(const Scenario& scenario) {
  EngineOptions options;
  options.workers = {WorkerSpec{.job = "localhost", .device_type = DeviceType::gpu, .device_count = 8}};
  options.topology = scenario.topology;
  std::int64_t peak = 0;
  open_engine("sim", options)->run([&](Worker& worker) {
    const auto strategy = make_strategy("mirrored", worker);
    const auto workload = make_workload(scenario.workload, *strategy);
    workload->prepare();
    worker.begin_step(0);
    workload->run_step(0);
    worker.end_step();
    for (const Device* device : worker.devices()) peak = std::max(peak, device->memory_peak_bytes());
  });
  return static_cast<double>(peak);
}

TEST(ParallelSimulation, ShardingSavesMemory) {
  const Scenario scenario = wide("{name: fully_sharded}", 256);
  const double parameters = 4.0 * (64 + 8 * 4097.0 + 1 + 10) * 4096 + 40;
  const double layer = 4.0 * 4097 * 4096;
  const double sharded = run_unscaled(scenario).metrics.at("memory_peak_bytes");
  EXPECT_LT(sharded, mirrored_peak_bytes(scenario) / 3);
  // A piece of parameters, gradients and momentum; two whole layers' parameters and gradients; activations.
  EXPECT_NEAR(sharded / (3 * parameters / 8 + 4 * layer), 1, 0.05);
}

// One scenario for each number of micro-batches, all of 1024 rows: their products take equally long.
class PipelineBubble : public testing::TestWithParam<int> {};

TEST_P(PipelineBubble, ShrinksAsTheFormulaSays) {
  const int m = GetParam();
  constexpr int kStages = 4;
  Scenario scenario = wide("{name: pipeline_parallel, micro_batches: " + std::to_string(m) + "}", 1024 * m);
  scenario.devices.per_worker = kStages;
  const Summary summary = run_unscaled(scenario).summary;
  const auto busy = static_cast<double>(summary.per_step.compute + summary.per_step.update);
  const double bubble = 1 - busy / static_cast<double>(summary.step_time.median);
  EXPECT_NEAR(bubble, (kStages - 1.0) / (m + kStages - 1.0), 0.04);
}
INSTANTIATE_TEST_SUITE_P(MicroBatches, PipelineBubble, testing::Values(1, 2, 4, 8, 16, 32));

TEST(ParallelSimulation, TensorParallelismWantsFastLinks) {
  const auto speedup = [](const std::string& machine) {
    Scenario alone = wide("{name: tensor_parallel}", 2048, machine, layers(4, 8192));
    alone.devices.per_worker = 1;
    return step_time(alone) / step_time(wide("{name: tensor_parallel}", 2048, machine, layers(4, 8192)));
  };
  const double nvlink = speedup("node: dgx-a100");
  const double pcie = speedup("node: pcie-8gpu");
  EXPECT_GT(nvlink, 5);
  EXPECT_LT(pcie, nvlink / 1.5);
  EXPECT_LT(step_time(wide("{name: tensor_parallel}", 2048)),
            step_time(wide("{name: tensor_parallel}", 2048, "node: pcie-8gpu")));
}

TEST(ParallelSimulation, GathersWhileItComputes) {
  const PerStep per_step = run_unscaled(wide("{name: fully_sharded}", 2048)).summary.per_step;
  EXPECT_GT(per_step.communication, 0);
  EXPECT_LT(per_step.exposed_communication, per_step.communication / 5);
}

TEST(ShardedLayers, DoTheWorkOfReplicasWithLessMemory) {
  const std::string examples = TANDEM_SOURCE_DIR "/scenarios/examples/";
  const Scenario scenario = load_scenario(examples + "bert-large-fully-sharded.yaml");
  const Report sharded = run_unscaled(scenario);
  const Report mirrored = run_unscaled(load_scenario(examples + "bert-large-hgx-h100.yaml"));
  const auto compute = static_cast<double>(mirrored.summary.per_step.compute);
  // More of it runs beside collectives, which slow it down.
  EXPECT_NEAR(static_cast<double>(sharded.summary.per_step.compute) / compute, 1, 0.05);
  EXPECT_LT(sharded.summary.per_step.update, mirrored.summary.per_step.update / 4);
  EXPECT_GT(sharded.summary.per_step.communication, mirrored.summary.per_step.communication);
  EXPECT_LT(sharded.metrics.at("memory_peak_bytes"), mirrored_peak_bytes(scenario) / 2);
}

TEST(ShardedLayers, GatherInTheOpenWithoutOverlap) {
  Scenario scenario = load_scenario(TANDEM_SOURCE_DIR "/scenarios/examples/bert-large-fully-sharded.yaml");
  const PerStep with = run_unscaled(scenario).summary.per_step;
  std::get<LayersSettings>(scenario.workload.kind).overlap = false;
  EXPECT_GT(run_unscaled(scenario).summary.per_step.exposed_communication, 2 * with.exposed_communication);
}

TEST(ShardedLayers, RunForReal) {
  Scenario scenario = load_scenario(TANDEM_SOURCE_DIR "/scenarios/examples/layers-small.yaml");
  scenario.strategy.name = "fully_sharded";
  scenario.workload.batch = 3;
  scenario.steps = 3;
  scenario.warmup_steps = 1;
  EXPECT_GT(run_unscaled(scenario).summary.per_step.compute, 0);
}

}  // namespace
}  // namespace tandem
