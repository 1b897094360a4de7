// Strategies whose cluster comes from a resolver, in every world: it must be that of the run.
#include <gmock/gmock.h>

#include <cstdlib>

#include "strategies/base/errors.h"
#include "strategies/cluster/resolvers.h"
#include "strategies/cluster/run_cluster.h"
#include "strategies/cluster/simple_resolver.h"
#include "strategies/cluster/tf_config_resolver.h"
#include "strategies/servers/distribute_coordinator.h"
#include "strategies/servers/parameter_server.h"
#include "strategies/servers/parameter_server_v2.h"
#include "strategies/types/multi_worker_mirrored.h"
#include "tests/conformance/strategy_testing.h"

namespace tandem {
namespace {

using testing::Each;
using testing::ThrowsMessage;

// The TF_CONFIG of a task.
FixedEnvironment tf_config(const std::string& cluster, const std::string& job, int task) {
  return {{"TF_CONFIG", R"({"cluster": )" + cluster + R"(, "task": {"type": ")" + job + R"(", "index": )" +
                            std::to_string(task) + "}}"}};
}

const std::string kChiefAndWorker = R"({"worker": ["b:1"], "chief": ["a:1"], "evaluator": ["c:1"]})";
const std::string kTwoWorkers = R"({"worker": ["a:1", "b:1"]})";
const std::string kChiefWorkerAndServer = R"({"ps": ["p:1"], "worker": ["b:1"], "chief": ["a:1"]})";

class ResolvedClusters : public ReachingOthers<InEveryWorld> {
 protected:
  // With the workers that the cluster describes.
  void run(const std::string& cluster, const Program& program) const {
    std::vector<WorkerSpec> workers = workers_of(ClusterSpec::from_json(cluster), GetParam().compute_devices, 1);
    EngineOptions options = world_options(GetParam(), static_cast<int>(workers.size()), 1);
    options.workers = std::move(workers);
    open_engine(GetParam().engine, std::move(options))->run(program);
  }
};
INSTANTIATE_TEST_SUITE_P(Worlds, ResolvedClusters, testing::ValuesIn(built_worlds()), name_of_world);

TEST_P(ResolvedClusters, TfConfigGivesEveryTaskItsPlace) {
  run(kChiefAndWorker, [](Worker& worker) {
    const FixedEnvironment variables = tf_config(kChiefAndWorker, worker.job(), worker.task());
    const auto resolver = std::make_shared<TfConfigResolver>(TaskQuery{}, variables);
    MultiWorkerMirroredStrategy strategy(worker, {.cluster_resolver = resolver});
    EXPECT_EQ(strategy.cluster_resolver(), resolver.get());
    EXPECT_EQ(strategy.num_replicas_in_sync(), 2);
    EXPECT_EQ(strategy.extended().should_checkpoint(), worker.job() == "chief");
    const Value ids = strategy.run([&](const Value::Parts&) {
      EXPECT_EQ(replica_id(), worker.job() == "chief" ? 0 : 1);
      return Value(filled(get_replica_context()->device(), {2}, replica_id() + 1));
    });
    EXPECT_THAT(floats_of(worker, strategy.reduce(ReduceOp::sum, ids).tensor()), Each(3.0F));
  });
}

TEST_P(ResolvedClusters, SlurmAndSageMakerDoTheSame) {
  run(kTwoWorkers, [](Worker& worker) {
    const std::string task = std::to_string(worker.task());
    FixedEnvironment slurm{{"SLURM_PROCID", task},         {"SLURM_STEP_NUM_TASKS", "2"},
                           {"SLURM_STEP_NODELIST", "a,b"}, {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"},
                           {"SLURMD_NODENAME", "a"},       {"SLURM_LOCALID", "0"}};
    FixedEnvironment sage_maker{{"SM_HOSTS", R"(["a", "b"])"}, {"SM_CURRENT_HOST", worker.task() == 0 ? "a" : "b"}};
    for (auto [name, variables] :
         {std::pair("SlurmClusterResolver", &slurm), std::pair("SageMakerClusterResolver", &sage_maker)}) {
      const std::shared_ptr<const ClusterResolver> resolver = make_cluster_resolver(name, *variables);
      EXPECT_EQ(resolver->task_id(), worker.task()) << name;
      const MultiWorkerMirroredStrategy strategy(worker, {.cluster_resolver = resolver});
      EXPECT_EQ(strategy.extended().first_replica_id(), worker.task()) << name;
    }
  });
}

TEST_P(ResolvedClusters, ParameterServersAreTheResolvers) {
  run(kChiefWorkerAndServer, [](Worker& worker) {
    if (worker.job() == "ps") return;
    const FixedEnvironment variables = tf_config(kChiefWorkerAndServer, worker.job(), worker.task());
    const auto resolver = std::make_shared<TfConfigResolver>(TaskQuery{}, variables);
    if (worker.job() == "chief") {
      ParameterServerStrategyV2 strategy(worker, {}, resolver);
      EXPECT_EQ(strategy.cluster_resolver(), resolver.get());
      EXPECT_EQ(strategy.create_variable({.name = "v", .shape = {1}})->devices().front()->id().job, "ps");
    }
    ParameterServerStrategy strategy(worker, {}, {.cluster_resolver = resolver});
    EXPECT_EQ(strategy.cluster_resolver(), resolver.get());
  });
}

TEST_P(ResolvedClusters, ContradictionsAreRefusedWithBoth) {
  run(kTwoWorkers, [](Worker& worker) {
    const auto refuses = [&](const std::string& cluster, const std::string& job, int task, const std::string& message) {
      const FixedEnvironment variables = tf_config(cluster, job, task);
      const auto resolver = std::make_shared<TfConfigResolver>(TaskQuery{}, variables);
      EXPECT_THAT([&] { MultiWorkerMirroredStrategy(worker, {.cluster_resolver = resolver}); },
                  ThrowsMessage<ValueError>(message));
    };
    const std::string here = "worker " + std::to_string(worker.task());
    const int other = 1 - worker.task();
    refuses(
        kTwoWorkers, "worker", other,
        "the cluster resolver says that this is worker " + std::to_string(other) + ", and the run has made it " + here);
    refuses(kChiefWorkerAndServer, "worker", worker.task(),
            "the cluster resolver describes the tasks chief 0, ps 0, worker 0, and the run has worker 0, worker 1");
    refuses(R"({"worker": ["a:1", "b:1"], "evaluator": ["c:1"]})", "evaluator", 0,
            "the cluster resolver says that this is evaluator 0, and the run has made it " + here +
                "; an evaluator is no task of the cluster, and trains with no strategy of it");
    const std::string only = ", and describes only the tasks worker 0, worker 1";
    refuses(kTwoWorkers, "worker", 2, "the cluster resolver says that this is worker 2" + only);
    refuses(kTwoWorkers, "worker", -1, "the cluster resolver says that this is worker -1" + only);
    refuses(kTwoWorkers, "chief", 0, "the cluster resolver says that this is chief 0" + only);
    const auto without_index = std::make_shared<SimpleResolver>(ClusterSpec::from_json(kTwoWorkers),
                                                                SimpleResolverOptions{.task = {.task_type = "worker"}});
    EXPECT_THAT([&] { MultiWorkerMirroredStrategy(worker, {.cluster_resolver = without_index}); },
                ThrowsMessage<ValueError>("the cluster resolver says that this is a worker, and not its index"));
    const auto servers = std::make_shared<SimpleResolver>(ClusterSpec::from_json(kChiefWorkerAndServer));
    EXPECT_THAT([&] { ParameterServerStrategy(worker, {}, {.cluster_resolver = servers}); },
                testing::Throws<ValueError>());
  });
}

class TfConfigOfProcess {
 public:
  explicit TfConfigOfProcess(const std::string& text) { setenv("TF_CONFIG", text.c_str(), 1); }
  ~TfConfigOfProcess() { unsetenv("TF_CONFIG"); }
  TfConfigOfProcess(const TfConfigOfProcess&) = delete;
  TfConfigOfProcess& operator=(const TfConfigOfProcess&) = delete;
};

// A strategy without a resolver.
TEST_P(ResolvedClusters, TfConfigIsTheDefault) {
  const auto expect_addresses = [](const Strategy& strategy, const Worker& worker) {
    const ClusterResolver* resolver = strategy.cluster_resolver();
    ASSERT_NE(resolver, nullptr);
    EXPECT_EQ(resolver->cluster_spec().task_address(worker.job(), worker.task()),
              worker.job() == "chief" ? "a:1" : "b:1");
  };
  {
    const TfConfigOfProcess config(R"({"cluster": )" + kChiefAndWorker + "}");
    run(kChiefAndWorker, [&](Worker& worker) {
      const MultiWorkerMirroredStrategy strategy(worker);
      expect_addresses(strategy, worker);
      const MultiWorkerMirroredStrategy alone(worker, {.devices = {worker.devices().front()}});
      EXPECT_EQ(alone.num_replicas_in_sync(), 1);
    });
    run(kTwoWorkers, [](Worker& worker) {
      EXPECT_THAT(
          [&] { MultiWorkerMirroredStrategy strategy(worker); },
          ThrowsMessage<ValueError>("TF_CONFIG describes the tasks chief 0, worker 0, and the run has worker 0, "
                                    "worker 1; give the run those tasks, or unset TF_CONFIG"));
    });
  }
  const TfConfigOfProcess config(R"({"cluster": )" + kChiefWorkerAndServer + "}");
  run(kChiefWorkerAndServer, [&](Worker& worker) {
    if (worker.job() == "ps") return;
    if (worker.job() == "chief") expect_addresses(ParameterServerStrategyV2(worker), worker);
    expect_addresses(ParameterServerStrategy(worker), worker);
  });
  run(kTwoWorkers, [](Worker& worker) {
    EXPECT_THAT([&] { ParameterServerStrategy strategy(worker); }, testing::Throws<ValueError>());
  });
}

// Nor TF_CONFIG: the resolver of the run.
TEST_P(ResolvedClusters, EveryStrategyOfSeveralTasksHasAResolver) {
  run(kChiefWorkerAndServer, [](Worker& worker) {
    if (worker.job() == "ps") return;
    ASSERT_NE(ParameterServerStrategy(worker).cluster_resolver(), nullptr);
    EXPECT_EQ(ParameterServerStrategy(worker).cluster_resolver()->task_type(), worker.job());
    if (worker.job() != "chief") return;
    ASSERT_NE(ParameterServerStrategyV2(worker).cluster_resolver(), nullptr);
    EXPECT_EQ(ParameterServerStrategyV2(worker).cluster_resolver()->cluster_spec().num_tasks("ps"), 1);
  });
}

// One process has one TF_CONFIG, which is that of only one of the run's workers.
TEST(TfConfig, OfOneProcessIsThatOfAllItsWorkers) {
  const TfConfigOfProcess config(R"({"cluster": )" + kTwoWorkers + R"(, "task": {"type": "worker", "index": 1}})");
  EngineOptions options;
  options.workers = workers_of(ClusterSpec::from_json(kTwoWorkers), DeviceType::cpu, 1);
  open_engine("cpu", options)->run([](Worker& worker) {
    const MultiWorkerMirroredStrategy strategy(worker);
    EXPECT_EQ(strategy.cluster_resolver()->task_id(), worker.task());
    EXPECT_EQ(strategy.cluster_resolver()->master("worker", 1), "b:1");
  });
}

// Its TF_CONFIG describes the cluster that it evaluates.
TEST(TfConfig, OfAnEvaluatorIsNotThatOfItsRun) {
  const TfConfigOfProcess config(R"({"cluster": )" + kTwoWorkers + R"(, "task": {"type": "evaluator", "index": 0}})");
  open_engine("cpu", {})->run([](Worker& worker) {
    const MultiWorkerMirroredStrategy strategy(worker);
    EXPECT_EQ(strategy.num_replicas_in_sync(), 1);
    EXPECT_EQ(strategy.cluster_resolver()->task_type(), "worker");
  });
}

// The other ranks would wait until their limit for a rank that joins no run.
TEST(Evaluator, IsNoRankOfALaunch) {
  const TfConfigOfProcess config(R"({"cluster": )" + kTwoWorkers + R"(, "task": {"type": "evaluator", "index": 0}})");
  int calls = 0;
  const auto evaluate = [&] {
    run_distribute_coordinator([&](const WorkerContext&) { ++calls; }, {.mode = CoordinatorMode::independent_worker});
  };
  evaluate();
  EXPECT_EQ(calls, 1) << "by itself";
  setenv("PMI_RANK", "2", 1);
  setenv("PMI_SIZE", "3", 1);
  EXPECT_THAT(evaluate, ThrowsMessage<RuntimeError>(testing::StartsWith("an evaluator was launched as rank 2 of 3")));
  EXPECT_THAT([] { start_task_of(TfConfigResolver()); }, testing::Throws<RuntimeError>());
  unsetenv("PMI_RANK");
  unsetenv("PMI_SIZE");
  EXPECT_EQ(calls, 1);
}

// The run's own cluster, without a resolver.
TEST_P(ResolvedClusters, TwoChiefsAreRefused) {
  EngineOptions options = world_options(GetParam(), 2, 1);
  for (WorkerSpec& spec : options.workers) spec.job = "chief";
  const char* const message = "there must be at most one 'chief' task, the run has chief 0 and chief 1";
  open_engine(GetParam().engine, std::move(options))->run([&](Worker& worker) {
    EXPECT_THAT([&] { MultiWorkerMirroredStrategy strategy(worker); }, ThrowsMessage<ValueError>(message));
    EXPECT_THAT([&] { ParameterServerStrategy strategy(worker); }, ThrowsMessage<ValueError>(message));
  });
}

// TensorFlow trains alone where there is no TF_CONFIG; here the run decides.
TEST_P(ResolvedClusters, AResolverWithoutAClusterContradictsNothing) {
  run(kTwoWorkers, [](Worker& worker) {
    const FixedEnvironment none;
    const MultiWorkerMirroredStrategy strategy(
        worker, {.cluster_resolver = std::make_shared<TfConfigResolver>(TaskQuery{}, none)});
    EXPECT_EQ(strategy.num_replicas_in_sync(), 2);
  });
}

TEST(WorkersOf, AreTheTasksInTheOrderOfRanks) {
  const std::vector<WorkerSpec> workers =
      workers_of(ClusterSpec::from_json(
                     R"({"ps": ["p:1"], "worker": {"2": "c:1", "0": "b:1"}, "chief": ["a:1"], "evaluator": ["e:1"]})"),
                 DeviceType::gpu, 8);
  std::vector<std::string> found;
  for (const WorkerSpec& spec : workers) {
    found.push_back(task_text(spec.job, spec.task) + ": " + std::to_string(spec.device_count));
    EXPECT_EQ(spec.device_type, DeviceType::gpu);
  }
  EXPECT_THAT(found, testing::ElementsAre("chief 0: 8", "worker 0: 8", "worker 2: 8", "ps 0: 0"));
  EXPECT_EQ(workers.back().topology_worker, 3);
}

TEST(WorkersOf, AnEmptyClusterAreOne) {
  const std::vector<WorkerSpec> workers = workers_of(ClusterSpec(), DeviceType::cpu, 2);
  ASSERT_EQ(workers.size(), 1U);
  EXPECT_EQ(task_text(workers[0].job, workers[0].task), "worker 0");
  EXPECT_EQ(workers[0].device_count, 2);
}

TEST(WorkersOf, AnotherJobIsRefused) {
  EXPECT_THAT(
      [] {
        workers_of(ClusterSpec{{"tester", {"a:1"}}}, DeviceType::cpu, 1);
      },
      ThrowsMessage<ValueError>("unknown job 'tester' of the cluster (known: chief, worker, ps, evaluator)"));
  EXPECT_THAT(
      [] {
        workers_of(ClusterSpec{{"worker_hosts", {"a:1"}}}, DeviceType::cpu, 1);
      },
      ThrowsMessage<ValueError>(testing::EndsWith("did you mean 'worker'?")));
}

TEST(WorkersOf, TwoChiefsAreRefused) {
  EXPECT_THAT(
      [] {
        workers_of(ClusterSpec{{"chief", {"a:1", "b:1"}}, {"worker", {"c:1"}}}, DeviceType::cpu, 1);
      },
      ThrowsMessage<ValueError>("there must be at most one 'chief' task, the cluster has 2: a:1 and b:1"));
}

TEST(WorkersOf, TwoTasksOfOneAddressAreRefused) {
  EXPECT_THAT(
      [] {
        workers_of(ClusterSpec{{"ps", {"a:1"}}, {"worker", {"b:1", "a:1"}}}, DeviceType::cpu, 1);
      },
      ThrowsMessage<ValueError>("ps 0 and worker 1 have the same address a:1, must have one each"));
  const ClusterSpec any_ports{{"worker", {"localhost:0", "localhost:0"}}};
  EXPECT_EQ(workers_of(any_ports, DeviceType::cpu, 1).size(), 2U);
}

TEST(TfConfig, WhatPeopleWriteHasAMessage) {
  const auto read = [](const char* text) {
    const FixedEnvironment variables{{"TF_CONFIG", text}};
    const TfConfigResolver resolver(TaskQuery{}, variables);
    resolver.cluster_spec();
    resolver.task_id();
  };
  EXPECT_THAT([&] { read("{'cluster': {'worker': ['a:1']}}"); },
              ThrowsMessage<ValueError>("TF_CONFIG is not JSON: {'cluster': {'worker': ['a:1']}}; JSON has double "
                                        "quotes, as json.dumps() writes them"));
  EXPECT_THAT([&] { read(R"({"cluster": {"worker": "a:1,b:1"}})"); },
              ThrowsMessage<TypeError>("tasks of job 'worker' must be a list or a map from index to address, not the "
                                       "text \"a:1,b:1\""));
  EXPECT_THAT([&] { read(R"({"task": {"type": "worker", "index": 0.5}})"); },
              ThrowsMessage<ValueError>("task index 0.5 must be a whole number"));
}

}  // namespace
}  // namespace tandem
