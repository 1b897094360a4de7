// Servers of a job's tasks, whose join() blocks until the job ends, in every world.
#include "strategies/servers/server.h"

#include <gmock/gmock.h>

#include "strategies/base/errors.h"
#include "strategies/cluster/run_cluster.h"
#include "strategies/servers/cluster_coordinator.h"
#include "strategies/servers/distribute_coordinator.h"
#include "strategies/servers/parameter_server.h"
#include "strategies/servers/worker_functions.h"
#include "tests/conformance/strategy_testing.h"

namespace tandem {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::ThrowsMessage;

const ClusterSpec kWorkersAndServer{{"worker", {"localhost:0", "localhost:0"}}, {"ps", {"localhost:0"}}};
const ClusterSpec kWithChief{{"chief", {"localhost:0"}}, {"worker", {"localhost:0"}}, {"ps", {"localhost:0"}}};

class JoinedServers : public ReachingOthers<InEveryWorld> {
 protected:
  void run(const ClusterSpec& cluster, const Program& program) const {
    std::vector<WorkerSpec> workers = workers_of(cluster, GetParam().compute_devices, 1);
    EngineOptions options = world_options(GetParam(), static_cast<int>(workers.size()), 1);
    options.workers = std::move(workers);
    open_engine(GetParam().engine, std::move(options))->run(program);
  }
};
INSTANTIATE_TEST_SUITE_P(Worlds, JoinedServers, testing::ValuesIn(built_worlds()), name_of_world);

// As in TensorFlow's programs: the parameter server joins, and the workers train.
TEST_P(JoinedServers, AParameterServerJoinsUntilTheWorkersHaveEnded) {
  run(kWorkersAndServer, [](Worker& worker) {
    Server server(kWorkersAndServer, worker.job(), worker.task());
    if (worker.job() == "ps") {
      server.join();
      return;
    }
    ParameterServerStrategy strategy(worker);
    const auto total = strategy.create_variable({.name = "total", .shape = {100}, .initial_value = {}});
    for (int step = 0; step < 20; ++step) {
      strategy.run([&](const Value::Parts&) {
        total->assign_add(filled(get_replica_context()->device(), {100}, 1));
        return Value();
      });
    }
    EXPECT_GE(floats_of(worker, total->read()).front(), 20);
  });
}

// The coordinator of TensorFlow 1 joins the server itself, in the program of a task that only serves.
TEST_P(JoinedServers, TheDistributeCoordinatorJoinsThem) {
  run(kWorkersAndServer, [](Worker& worker) {
    const FixedEnvironment no_variables;
    CoordinatorOptions options{.strategy = coordination_traits("ParameterServer"),
                               .mode = CoordinatorMode::independent_worker,
                               .cluster_spec = kWorkersAndServer,
                               .task_type = worker.job(),
                               .task_id = worker.task(),
                               .variables = &no_variables};
    int calls = 0;
    run_distribute_coordinator([&](const WorkerContext&) { ++calls; }, options);
    EXPECT_EQ(calls, worker.job() == "worker" ? 1 : 0);
  });
}

// Each strategy has a variable of its own, which the worker updates from its own process.
TEST_P(JoinedServers, AWorkerServesTheCoordinatorsOfStrategiesOneAfterTheOther) {
  WorkerFunctions functions;
  functions.add("add", [](ParameterServerStrategyV2& strategy, const Value::Parts& arguments) {
    return strategy.run(
        [](const Value::Parts& mine) {
          mine[0].variable()->assign_add(filled(get_replica_context()->device(), {50}, mine[1].number()));
          return Value();
        },
        arguments);
  });
  run(kWithChief, [&](Worker& worker) {
    Server server(kWithChief, worker.job(), worker.task());
    if (worker.job() != "chief") return server.join(worker, functions);
    for (int round = 1; round <= 3; ++round) {
      ParameterServerStrategyV2 strategy(worker);
      const auto total = strategy.create_variable({.name = "total", .shape = {50}, .initial_value = {}});
      ClusterCoordinator::coordinate(strategy, [&](ClusterCoordinator& coordinator) {
        for (int i = 0; i < 4; ++i) coordinator.schedule("add", {total, round});
      });
      EXPECT_THAT(floats_of(worker, total->read()), Each(4.0F * static_cast<float>(round)));
    }
  });
}

TEST_P(JoinedServers, AServerOfAnotherTaskIsRefused) {
  run(kWorkersAndServer, [](Worker& worker) {
    if (worker.job() != "ps") return;
    EXPECT_THAT([&] { Server(kWorkersAndServer, "worker", 1).join(worker); },
                ThrowsMessage<InvalidArgumentError>("the server of worker 1 in the program of ps 0"));
    EXPECT_THAT([&] { Server(kWithChief, "ps", 0).join(); },
                ThrowsMessage<InvalidArgumentError>(HasSubstr("has the tasks chief 0, ps 0, worker 0, and the run has "
                                                              "ps 0, worker 0, worker 1")));
    EXPECT_THROW(Server({.cluster = kWorkersAndServer, .job_name = "ps"}, false).join(worker), RuntimeError);
  });
}

}  // namespace
}  // namespace tandem
