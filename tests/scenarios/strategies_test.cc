// Every strategy by its name in a scenario, in both worlds: what is learned and who takes part.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/engine_info.h"
#include "scenarios/job/job.h"
#include "scenarios/reading/scenario_flags.h"
#include "tests/scenarios/running.h"

namespace tandem {
namespace {

Scenario digits(const std::string& more, const std::string& momentum = "0.9") {
  return read_scenario("workload: {kind: mlp, hidden: [64, 32], batch: 64, learning_rate: 0.2, momentum: " + momentum +
                       "}\nsteps: 20\nwarmup_steps: 2\n" + more);
}

constexpr const char* kSimulated = "engine: {name: sim, values: real}\ntopology: {cluster: {node: dgx-a100, workers: ";

struct InStep {
  const char* name;
  const char* scenario;
  int replicas, workers;
};

class StrategyInStep : public testing::TestWithParam<InStep> {};

TEST_P(StrategyInStep, LearnsWhatOneDeviceLearns) {
  const Report one = run_scenario(digits("strategy: {name: one_device}\n")).report;
  const auto& [name, scenario, replicas, workers] = GetParam();
  for (const std::string& world : {std::string(), kSimulated + std::to_string(workers) + "}}\n"}) {
    const Report report = run_scenario(digits(scenario + world)).report;
    EXPECT_EQ(report.replicas, replicas) << world;
    EXPECT_EQ(report.workers, workers) << world;
    EXPECT_FALSE(report.asynchronous);
    expect_equal_losses(report.loss, one.loss);
    EXPECT_NEAR(report.metrics.at("test_accuracy"), one.metrics.at("test_accuracy"), 0.01) << world;
  }
}
INSTANTIATE_TEST_SUITE_P(
    Digits, StrategyInStep,
    testing::Values(
        InStep{"one_device", "strategy: {name: one_device}\n", 1, 1},
        InStep{"mirrored", "strategy: {name: mirrored}\ndevices: {per_worker: 3}\n", 3, 1},
        InStep{"central_storage", "strategy: {name: central_storage}\ndevices: {per_worker: 2}\n", 2, 1},
        InStep{"central_storage_of_one", "strategy: {name: central_storage}\ndevices: {per_worker: 1}\n", 1, 1},
        InStep{"two_workers", "strategy: {name: multi_worker_mirrored}\ndevices: {workers: 2, per_worker: 2}\n", 4, 2},
        InStep{"two_of_one", "strategy: {name: multi_worker_mirrored}\ndevices: {workers: 2, per_worker: 1}\n", 2, 2},
        InStep{"three_with_chief",
               "strategy: {name: multi_worker_mirrored}\ndevices: {workers: 3, per_worker: 1, chief: true}\n", 3, 3},
        InStep{"synchronous_servers",
               "strategy: {name: parameter_server, updates: sync}\ndevices: {workers: 2, per_worker: 2, ps: 2}\n", 4,
               2},
        InStep{"synchronous_server_of_three",
               "strategy: {name: parameter_server, updates: sync, placement: by_size}\n"
               "devices: {workers: 3, per_worker: 1, ps: 1, chief: true}\n",
               3, 3},
        InStep{"local_servers", "strategy: {name: parameter_server}\ndevices: {per_worker: 2}\n", 2, 1},
        InStep{"local_server", "strategy: {name: parameter_server}\ndevices: {per_worker: 1, workers: 1}\n", 1, 1}),
    [](const auto& instance) { return std::string(instance.param.name); });

TEST(ParameterServer, TrainsOnTwoWorkersInBothWorlds) {
  const std::string job = "strategy: {name: parameter_server, placement: by_size}\n";
  for (const std::string& world : {std::string("devices: {workers: 2, per_worker: 2, ps: 2}\n"),
                                   kSimulated + std::string("3}}\ndevices: {workers: 2, per_worker: 2, ps: 2}\n")}) {
    const Report report = run_scenario(digits(job + world, "0")).report;
    EXPECT_EQ(report.replicas, 4);
    EXPECT_EQ(report.workers, 2);
    EXPECT_EQ(report.parameter_servers, 2);
    EXPECT_TRUE(report.asynchronous);
    EXPECT_LT(report.loss.back(), 0.8 * report.loss.front()) << world;
    EXPECT_GE(report.metrics.at("staleness_max"), report.metrics.at("staleness_mean"));
    ASSERT_EQ(report.summary.workers.size(), 2u);
    EXPECT_EQ(report.summary.step_time.samples, 2 * 18) << "a step of each worker is a step";
  }
}

TEST(ParameterServer, OneWorkerIsNeverStale) {
  const Report report =
      run_scenario(digits("strategy: {name: parameter_server}\ndevices: {workers: 1, per_worker: 2, ps: 1}\n")).report;
  EXPECT_EQ(report.metrics.at("staleness_max"), 0);
  EXPECT_EQ(report.metrics.at("staleness_mean"), 0);
  expect_equal_losses(report.loss, run_scenario(digits("strategy: {name: one_device}\n")).report.loss);
}

std::vector<std::string> tasks(const std::string& more) {
  std::vector<std::string> texts;
  for (const WorkerSpec& spec : tasks_of(digits(more))) {
    texts.push_back(spec.job + std::to_string(spec.task) + "@" + std::to_string(spec.topology_worker));
  }
  return texts;
}

TEST(Job, HasAPlaceForEveryTask) {
  using testing::ElementsAre;
  const std::string mirrored = "strategy: {name: multi_worker_mirrored}\n";
  const std::string servers = "strategy: {name: parameter_server}\n";
  const auto machines = [](int n) {
    return "topology: {cluster: {node: dgx-a100, workers: " + std::to_string(n) + "}}\n";
  };
  EXPECT_THAT(tasks(""), ElementsAre("localhost0@0"));
  EXPECT_THAT(tasks(mirrored + machines(3)), ElementsAre("worker0@0", "worker1@1", "worker2@2"));
  EXPECT_THAT(tasks(mirrored + machines(3) + "devices: {workers: 2, chief: true}\n"),
              ElementsAre("chief0@0", "worker0@1"));
  EXPECT_THAT(tasks(mirrored + "devices: {workers: 2}\n"), ElementsAre("worker0@0", "worker1@0")) << "this machine";
  EXPECT_THAT(tasks(servers + machines(2)), ElementsAre("worker0@0", "worker1@1", "ps0@0")) << "no machine is left";
  EXPECT_THAT(tasks(servers + machines(4) + "devices: {workers: 2, ps: 3}\n"),
              ElementsAre("worker0@0", "worker1@1", "ps0@2", "ps1@3", "ps2@2"));
  EXPECT_THAT(tasks(machines(2) + "devices: {workers: 1}\n"), ElementsAre("localhost0@0"))
      << "one worker of a larger cluster, when the scenario says so";
}

// An engine of GPUs that the command line chooses computes there, and not on the host.
TEST(DeviceType, IsThatOfAnEngineOfGpusThatTheOptionsChoose) {
  ASSERT_EQ(engine_info("cuda").default_device, DeviceType::gpu);
  const Scenario on_cpus = digits("devices: {type: cpu, per_worker: 2}\n");
  ScenarioFlags flags;
  EXPECT_EQ(device_type_for(on_cpus, flags), DeviceType::cpu);
  flags.engine = "cuda";
  EXPECT_EQ(device_type_for(on_cpus, flags), DeviceType::gpu);
  flags.device_type = "cpu";
  EXPECT_EQ(device_type_for(on_cpus, flags), DeviceType::cpu) << "asked for";
  EXPECT_EQ(device_type_for(digits("engine: {name: cuda}\ndevices: {type: cpu}\n"), {}), DeviceType::cpu)
      << "the scenario's own engine";
  const ScenarioFlags of_cpus{.engine = "cpu"};
  EXPECT_EQ(device_type_for(digits("engine: {name: sim}\ntopology: dgx-a100\n"), of_cpus), DeviceType::gpu)
      << "the engine refuses it";
}

TEST(Job, NotesWhichGpusAreShared) {
  const auto notes = [](const std::string& more) {
    const Scenario scenario = digits("engine: {name: sim}\n" + more);
    return notes_of_shared_gpus(job_of(scenario), {});
  };
  const std::string two = "topology: {cluster: {node: dgx-a100, workers: 2}}\n";
  const std::string mirrored = "strategy: {name: multi_worker_mirrored}\n";
  EXPECT_THAT(notes(two + mirrored + "devices: {per_worker: 8}\n"), testing::IsEmpty());
  EXPECT_THAT(
      notes(two + mirrored + "devices: {per_worker: 20}\n"),
      testing::ElementsAre("shared: 20 logical devices are on 8 GPUs of one machine, up to 3 on each; times are "
                           "not those of 20 GPUs"))
      << "once for equal machines";
  EXPECT_THAT(notes("topology: dgx-a100\n" + mirrored + "devices: {workers: 1, per_worker: 9}\n"),
              testing::ElementsAre(testing::HasSubstr("shared: 9 logical devices")));
  EXPECT_THAT(notes("topology: dgx-a100\ndevices: {type: cpu, per_worker: 400}\n"), testing::IsEmpty());
}

// Two workers of one real machine whose GPUs they share; the fake machine is what the engine says of itself.
TEST(Job, NotesWorkersThatShareTheGpusOfThisMachine) {
  const Scenario scenario =
      digits("engine: {name: cuda}\nstrategy: {name: multi_worker_mirrored}\ndevices: {workers: 2, per_worker: 2}\n");
  Capabilities machine;
  machine.hardware.resize(3);  // a processor
  machine.hardware[1].type = machine.hardware[2].type = DeviceType::gpu;
  EXPECT_THAT(notes_of_shared_gpus(job_of(scenario), machine),
              testing::ElementsAre("shared: 4 logical devices are on 2 GPUs of one machine, up to 2 on each; times are "
                                   "not those of 4 GPUs"));
}

TEST(Job, RefusesWhatTheStrategyOrTheTopologyLacks) {
  const auto message = [](const Scenario& scenario) -> std::string {
    try {
      run_scenario(scenario);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  Scenario scenario = digits("strategy: {name: mirrored}\ntopology: {cluster: {node: dgx-a100, workers: 2}}\n");
  EXPECT_THAT(message(scenario), testing::HasSubstr("topology: strategy 'mirrored' runs on one worker; this topology "
                                                    "has 2 (write devices: {workers: 1} for the first one)"));
  scenario = digits("strategy: {name: multi_worker_mirrored}\ndevices: {workers: 3, per_worker: 1}\n");
  scenario.engine = {.name = "sim", .values = {}, .collectives = {}};
  scenario.topology = std::make_shared<const Topology>(make_cluster("dgx-a100", 2));
  EXPECT_THAT(message(scenario),
              testing::HasSubstr("devices.workers: more than the machines of the topology: 2, found 3"));
  for (const char* name : {"one_device", "parameter_server"}) {  // the first reduces nothing
    scenario = digits("strategy: {name: " + std::string(name) + "}\n");
    scenario.strategy.cross_device_ops = "nccl";
    EXPECT_THAT(message(scenario),
                testing::HasSubstr("strategy '" + std::string(name) + "' has its own; 'nccl' cannot be chosen"));
  }
}

}  // namespace
}  // namespace tandem
