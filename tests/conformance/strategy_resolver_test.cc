// Strategies whose cluster comes from a resolver, in every world: it must be that of the run.
#include <gmock/gmock.h>

#include "strategies/base/errors.h"
#include "strategies/cluster/resolvers.h"
#include "strategies/cluster/run_cluster.h"
#include "strategies/cluster/simple_resolver.h"
#include "strategies/cluster/tf_config_resolver.h"
#include "strategies/multi_worker_mirrored.h"
#include "strategies/parameter_server_v2.h"
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
            "the cluster resolver says that this is evaluator 0, and the run has made it " + here);
    const auto servers = std::make_shared<SimpleResolver>(ClusterSpec::from_json(kChiefWorkerAndServer));
    EXPECT_THAT([&] { ParameterServerStrategy(worker, {}, {.cluster_resolver = servers}); },
                testing::Throws<ValueError>());
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
      ThrowsMessage<ValueError>("job 'tester' of the cluster (known: chief, worker, ps, evaluator)"));
}

}  // namespace
}  // namespace tandem
