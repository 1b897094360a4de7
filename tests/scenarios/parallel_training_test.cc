// Every way to divide a model learns what one device learns, in every world, with sizes that divide and that do not.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <thread>

#include "engine/engine.h"
#include "scenarios/workloads/divided.h"
#include "scenarios/workloads/mlp_layers.h"
#include "scenarios/workloads/trainable.h"
#include "strategies/parallel/mesh_division.h"
#include "strategies/parallel/sharded_division.h"
#include "tests/scenarios/running.h"

namespace tandem {
namespace {

constexpr int kSteps = 8;

// 61 rows and layers of 50, 33 and 70 outputs divide by none of the numbers of devices below.
Scenario uneven_digits(const std::string& strategy, int devices, MeshSettings mesh = {}) {
  Scenario scenario = parse_scenario(
      "schema_version: 1\n"
      "workload: {kind: mlp, hidden: [50, 33, 70], batch: 61, learning_rate: 0.2, momentum: 0.9}\n"
      "strategy: {name: one_device}\nengine: {name: cpu}\nsteps: 8\n",
      "digits.yaml");
  scenario.strategy.name = strategy;
  scenario.strategy.mesh = std::move(mesh);
  scenario.devices = {.type = DeviceType::cpu, .per_worker = devices};
  return scenario;
}

const Report& on_one_device() {
  static const Report report = run_scenario(uneven_digits("one_device", 1)).report;
  return report;
}

void expect_same_learning(const Report& report) {
  const Report& reference = on_one_device();
  ASSERT_EQ(report.loss.size(), static_cast<std::size_t>(kSteps));
  for (std::size_t step = 0; step < report.loss.size(); ++step) {
    EXPECT_NEAR(report.loss[step] / reference.loss[step], 1, 1e-5) << "step " << step;
  }
  EXPECT_NEAR(report.metrics.at("test_accuracy"), reference.metrics.at("test_accuracy"), 1e-2);
}

struct Case {
  std::string name;
  std::string strategy;
  int devices = 1;
  MeshSettings mesh{};
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const int devices : {1, 2, 4, 8}) {
    const std::string number = std::to_string(devices);
    all.push_back({"fully_sharded_" + number, "fully_sharded", devices});
    all.push_back({"tensor_parallel_" + number, "tensor_parallel", devices});
    if (devices > 4) continue;  // than layers
    all.push_back({"pipeline_parallel_" + number, "pipeline_parallel", devices, {.micro_batches = 5}});
    all.push_back({"pipeline_without_micro_batches_" + number, "pipeline_parallel", devices});
  }
  all.push_back({"data_and_tensor", "mesh", 8, {.data = 2, .tensor = 4}});
  all.push_back({"data_and_pipeline", "mesh", 8, {.data = 2, .pipeline = 4, .micro_batches = 3}});
  all.push_back({"tensor_and_pipeline", "mesh", 6, {.tensor = 3, .pipeline = 2, .micro_batches = 7}});
  all.push_back({"whole_matrices_between_stages",
                 "mesh",
                 6,
                 {.tensor = 3, .pipeline = 2, .micro_batches = 7, .scatter_gather = false}});
  const MeshSettings interleaved{.pipeline = 2, .micro_batches = 6, .virtual_stages = 2};
  all.push_back({"interleaved", "pipeline_parallel", 2, interleaved});
  MeshSettings interleaved_mesh = interleaved;
  interleaved_mesh.data = interleaved_mesh.tensor = 2;
  all.push_back({"interleaved_mesh", "mesh", 8, interleaved_mesh});
  all.push_back({"all_three", "mesh", 8, {.data = 2, .tensor = 2, .pipeline = 2, .micro_batches = 4}});
  return all;
}

class ParallelTraining : public testing::TestWithParam<Case> {
 protected:
  Scenario scenario() const { return uneven_digits(GetParam().strategy, GetParam().devices, GetParam().mesh); }
};

TEST_P(ParallelTraining, LearnsWhatOneDeviceLearns) {
  expect_same_learning(run_scenario(scenario()).report);
}

TEST_P(ParallelTraining, LearnsItOnSimulatedGpus) {
  expect_same_learning(run_scenario(on_simulated_gpus(scenario())).report);
}

INSTANTIATE_TEST_SUITE_P(Ways, ParallelTraining, testing::ValuesIn(cases()),
                         [](const auto& instance) { return instance.param.name; });

// Tasks that are ready at one instant may run in any order.
TEST(ParallelTrainingUnderSeeds, LearnsTheSame) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    RunOptions options;
    options.schedule_seed = seed;
    Scenario mesh = uneven_digits("mesh", 8, {.data = 2, .tensor = 2, .pipeline = 2, .micro_batches = 4});
    expect_same_learning(run_scenario(on_simulated_gpus(mesh), options).report);
    expect_same_learning(run_scenario(on_simulated_gpus(uneven_digits("fully_sharded", 8)), options).report);
  }
}

// Two processes with two devices each: groups along every axis, stages and replicas in different processes.
void expect_same_learning_on_workers(const MeshSettings& mesh, const std::function<void(Worker&)>& at_first = {}) {
  const Report& reference = on_one_device();
  const Scenario scenario = uneven_digits("mesh", 4, mesh);
  const ParallelOptions parallel{.data = mesh.data,
                                 .tensor = mesh.tensor,
                                 .pipeline = mesh.pipeline,
                                 .micro_batches = mesh.micro_batches,
                                 .batch = scenario.workload.batch};
  EngineOptions options;
  options.workers = {WorkerSpec{.task = 0, .device_count = 2}, WorkerSpec{.task = 1, .device_count = 2}};
  open_engine("cpu", options)->run([&](Worker& worker) {
    if (at_first) at_first(worker);
    const MeshDivision on_mesh;
    const ShardedDivision sharded;
    const Division& division = mesh.data == 4 ? static_cast<const Division&>(sharded) : on_mesh;
    DividedWorkload workload(worker, trainable_model(scenario.workload, worker), division, parallel);
    workload.prepare();
    for (int step = 0; step < kSteps; ++step) {
      worker.begin_step(step);
      workload.run_step(step);
      worker.end_step();
    }
    Report report;
    workload.finish(report, true);
    for (std::size_t step = 0; step < report.loss.size(); ++step) {
      EXPECT_NEAR(report.loss[step] / reference.loss[step], 1, 1e-5) << "step " << step;
    }
  });
}

class ParallelTrainingOnWorkers : public testing::TestWithParam<MeshSettings> {};

TEST_P(ParallelTrainingOnWorkers, LearnsTheSame) {
  expect_same_learning_on_workers(GetParam());
}

// The first step may not read what is still on its way to the devices.
TEST_P(ParallelTrainingOnWorkers, WaitsForItsInitialValues) {
  expect_same_learning_on_workers(GetParam(), [](Worker& worker) {
    for (Device* device : worker.devices()) {
      device->compute_stream().launch(
          op::host_function("late", {}, [] { std::this_thread::sleep_for(std::chrono::milliseconds(50)); }));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ways, ParallelTrainingOnWorkers,
                         testing::Values(MeshSettings{.data = 4}, MeshSettings{.tensor = 4},
                                         MeshSettings{.pipeline = 4},
                                         MeshSettings{.data = 2, .pipeline = 2, .micro_batches = 3}),
                         [](const auto& instance) {
                           const MeshSettings& mesh = instance.param;
                           return "data" + std::to_string(mesh.data) + "_tensor" + std::to_string(mesh.tensor) +
                                  "_pipeline" + std::to_string(mesh.pipeline);
                         });

// A stage on each of two machines, and pieces of parameters over both.
TEST(ParallelTrainingOnMachines, LearnsTheSame) {
  for (const bool is_mesh : {true, false}) {
    Scenario scenario = is_mesh ? uneven_digits("mesh", 4, {.data = 2, .tensor = 2, .pipeline = 2, .micro_batches = 4})
                                : uneven_digits("fully_sharded", 4);
    scenario = on_simulated_gpus(std::move(scenario));
    scenario.topology = std::make_shared<const Topology>(make_cluster("dgx-a100", 2));
    const Report report = run_scenario(scenario).report;
    EXPECT_EQ(report.workers, 2);
    ASSERT_EQ(report.loss.size(), static_cast<std::size_t>(kSteps));
    for (std::size_t step = 0; step < report.loss.size(); ++step) {
      EXPECT_NEAR(report.loss[step] / on_one_device().loss[step], 1, 1e-5) << "step " << step;
    }
  }
}

// Each device already has the part of one layer's output that the next one needs.
TEST(MlpLayers, AlternateAndEndWithRows) {
  MlpSettings mlp;
  LabelledRows rows;
  rows.columns = 5;
  rows.classes = 4;
  mlp.rows = std::make_shared<const LabelledRows>(rows);
  mlp.hidden = {7, 11};
  const std::vector<Layer> layers = layers_of(mlp).model.layers;
  ASSERT_EQ(layers.size(), 3u);
  EXPECT_EQ(layers[0].split, Layer::Split::rows);
  EXPECT_EQ(layers[1].split, Layer::Split::columns);
  EXPECT_EQ(layers[2].split, Layer::Split::rows);
  EXPECT_EQ(layer_part(layers[1], 2, 0).gemm->columns, 6) << "the first part has the column that is over";
  EXPECT_EQ(layer_part(layers[2], 2, 0).gemm->depth, 6) << "what layer 1 leaves on the device";
  EXPECT_EQ(layer_part(layers[1], 2, 1).parameters(), 7 * 5 + 5);
}

TEST(ParallelTrainingRunner, RefusesWhatDoesNotDivide) {
  EXPECT_THROW(run_scenario(uneven_digits("pipeline_parallel", 8)), InputError) << "4 layers";
  EXPECT_THROW(run_scenario(uneven_digits("pipeline_parallel", 2, {.micro_batches = 62})), InputError);
  EXPECT_THROW(run_scenario(uneven_digits("mesh", 4, {.data = 3})), InputError);
  EXPECT_THROW(run_scenario(uneven_digits("tensor_parallel", 51)), InputError) << "50 outputs";
  EXPECT_THROW(run_scenario(uneven_digits("fully_sharded", 62)), InputError);
  EXPECT_THROW(run_scenario(uneven_digits("mesh", 3, {.data = 4})), InputError);
}

}  // namespace
}  // namespace tandem
