// Bounds of points: no step takes less, and they are not far below it. DrawnRuns looks at random points likewise
// (tests/fuzz).
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenarios/job/job.h"
#include "scenarios/plan/plan.h"
#include "scenarios/plan/step_bound.h"
#include "tests/scenarios/running.h"

namespace tandem {
namespace {

constexpr double kBoundRounding = 1e-6;

constexpr const char* kBoundedGpt =
    "kind: layers, model: gpt, sizes: {layers: 8, hidden: 1024, heads: 16, tokens: 512}, dtype: bf16";
constexpr const char* kBoundedPerceptron = "kind: mlp, hidden: [512, 512, 512, 512, 512, 512, 512]";

struct BoundedJob {
  std::string name{}, workload{}, strategy{};
  double least_share = 0.5;  // of the step
  std::string more_devices{}, overrides{};
  int machines = 1, per_machine = 4;
};

Scenario scenario_of(const BoundedJob& job) {
  return read_scenario(fmt::format(
      "name: bounded\nworkload: {{{}, batch: 32}}\nstrategy: {{{}}}\nengine: {{name: sim}}\n"
      "topology: {{cluster: {{node: hgx-h100, workers: {}{}}}}}\n"
      "devices: {{type: gpu, workers: {}, per_worker: {}{}}}\nsteps: 2\nwarmup_steps: 1\n",
      job.workload, job.strategy, job.machines, job.overrides, job.machines, job.per_machine, job.more_devices));
}

double bound_of(const Scenario& scenario) {
  const Job job = job_of(scenario);
  const std::optional<LoneWork> work = lone_work(job);
  return work ? least_step_s(job, *work, LinkRates(*scenario.topology)) : 0;
}

double step_of(const Scenario& scenario) {
  const RunOptions options{.measures_scaling = false, .only_report = true};
  return static_cast<double>(run_scenario(scenario, options).report.summary.step_time.mean) * 1e-9;
}

class PlanBounds : public testing::TestWithParam<BoundedJob> {};

TEST_P(PlanBounds, AreBelowTheStepAndNotFarBelow) {
  const Scenario scenario = scenario_of(GetParam());
  const double bound = bound_of(scenario), step = step_of(scenario);
  EXPECT_LE(bound, step * (1 + kBoundRounding));
  EXPECT_GE(bound, step * GetParam().least_share);
}

std::vector<BoundedJob> bounded_jobs() {
  const std::string gpt = kBoundedGpt, perceptron = kBoundedPerceptron;
  return {
      {"TensorParallel", gpt, "name: tensor_parallel", 0.8},
      {"TensorParallelOnTwoMachines", gpt, "name: tensor_parallel", 0.8, "", "", 2, 2},
      {"PipelineParallel", gpt, "name: pipeline_parallel, micro_batches: 8", 0.8},
      {"InterleavedPipeline", gpt, "name: pipeline_parallel, micro_batches: 8, virtual_stages: 2", 0.8},
      {"ZeroBubblePipeline", gpt, "name: pipeline_parallel, micro_batches: 8, schedule: zero_bubble", 0.8},
      {"ZeroBubbleOfTensors", gpt, "name: mesh, tensor: 2, pipeline: 2, micro_batches: 8, schedule: zero_bubble", 0.6},
      {"Pieces", gpt + ", stack: {accumulation: in_products}",
       "name: mesh, data: 4, micro_batches: 4, shard_parameters: true", 0.5},
      {"PiecesOfPasses", gpt + ", gradient_accumulation_steps: 4", "name: fully_sharded", 0.5},
      {"ParametersGatheredInBytes", gpt + ", precision: {compute: fp8, gather: fp8}",
       "name: mesh, data: 4, distributed_optimizer: true", 0.7},
      {"LargeSpread", gpt + ", spread: 0.3", "name: mesh, data: 2, tensor: 2", 0.8},
      {"LargeSpreadOfReplicas", gpt + ", spread: 0.3", "name: multi_worker_mirrored", 0.8},
      {"MirroredPerceptron", perceptron, "name: mirrored", 0.3},
      {"PerceptronsOnTwoMachines", perceptron, "name: multi_worker_mirrored", 0.2, "", "", 2, 2},
      {"CentralPerceptron", perceptron, "name: central_storage", 0.01},
      {"PerceptronOfServers", perceptron, "name: parameter_server", 0.005, ", ps: 1", "", 2, 2},
      {"ShardedPerceptron", perceptron, "name: fully_sharded", 0.05},
      {"TensorParallelPerceptron", perceptron, "name: tensor_parallel", 0.1},
      {"PerceptronInAPipeline", perceptron, "name: pipeline_parallel, micro_batches: 4", 0.1},
      {"PipelineFromTheSlowestMachine", gpt, "name: pipeline_parallel, micro_batches: 8", 0.2, "",
       ", overrides: {\"w0.gpu*\": {memory_bandwidth: 300GB/s}}", 2, 2},
  };
}

INSTANTIATE_TEST_SUITE_P(Jobs, PlanBounds, testing::ValuesIn(bounded_jobs()),
                         [](const auto& job) { return job.param.name; });

// Kernels take as long as those of the slowest of all devices, not of the few that are simulated.
TEST(PlanBoundsOfManyDevices, CountThatAllWaitForTheSlowest) {
  const auto bound_with = [](const char* spread) {
    return bound_of(scenario_of({.workload = fmt::format("{}, spread: {}", kBoundedGpt, spread),
                                 .strategy = "name: mesh, data: 32",
                                 .machines = 4,
                                 .per_machine = 8}));
  };
  constexpr double kSlowestOf32 = 2.07;  // standard deviations above the mean (docs/workloads.md)
  EXPECT_GT(bound_with("0.5") / bound_with("0"), 1 + 0.5 * kSlowestOf32 * 0.8);
}

PlanTable bounded_plan_of(const std::string& text) {
  const Scenario scenario = read_scenario(text);
  const PlanOptions options{.processes = 2, .wanted = 1};
  PlanTable table = planned_points(scenario, options);
  run_plan(scenario, options, table);
  return table;
}

// As many devices as there are divide the layers, so that points with others have passes of their own.
TEST(PlanBoundsOfPoints, DependOnTheDevicesThatDivideLayers) {
  const PlanTable table = bounded_plan_of(
      fmt::format("name: bounded\nworkload: {{{}, batch: 32}}\nstrategy: {{name: tensor_parallel}}\n"
                  "engine: {{name: sim}}\ntopology: {{cluster: {{node: hgx-h100, workers: 4}}}}\n"
                  "devices: {{type: gpu, workers: 1, per_worker: 2}}\nsteps: 2\nwarmup_steps: 1\n"
                  "sweep: {{values: {{devices.workers: [4, 2, 1], strategy.name: [tensor_parallel, pipeline_parallel], "
                  "workload.activation_checkpointing: [false, true]}}}}\n",
                  kBoundedGpt));
  ASSERT_EQ(table.sweep.points.size(), 12U);
  for (std::size_t place = 0; place < table.planned.size(); ++place) {
    EXPECT_GT(table.planned[place].least_step_s, 0) << place;
    const SweptPoint& point = table.sweep.points[place];
    if (point.state != PointState::done) continue;
    EXPECT_LE(table.planned[place].least_step_s, static_cast<double>(point.step_time) * 1e-9 * (1 + kBoundRounding));
  }
  EXPECT_EQ(table.gap(), 0);
  EXPECT_LT(table.simulated(), table.planned.size());
}

std::string text_of_trace(const std::string& more) {
  return "name: replay\nworkload: {kind: trace, files: [" TANDEM_SOURCE_DIR
         "/docs/examples/trace.json]}\nstrategy: {name: multi_worker_mirrored}\nengine: {name: sim}\n"
         "topology: hgx-h100\ndevices: {type: gpu, per_worker: 8}\nsteps: 2\nwarmup_steps: 1\n" +
         more;
}

TEST(PlanBoundsOfTraces, AreWhatRanksDoByThemselves) {
  const PlanTable table = bounded_plan_of(text_of_trace("sweep: {values: {topology: [hgx-h100, dgx1-v100]}}\n"));
  for (std::size_t place = 0; place < table.planned.size(); ++place) {
    const SweptPoint& point = table.sweep.points[place];
    ASSERT_EQ(point.state, PointState::done) << point.problem;
    const double step = static_cast<double>(point.step_time) * 1e-9;
    EXPECT_LE(table.planned[place].least_step_s, step * (1 + kBoundRounding));
    EXPECT_GE(table.planned[place].least_step_s, step * 0.3);
  }
}

}  // namespace
}  // namespace tandem
