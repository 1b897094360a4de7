// Our own strategies, through the kit that strategies of others are tested with.
#include <fmt/format.h>

#include "strategies/servers/cluster_coordinator.h"
#include "tests/conformance/kit/program_run.h"
#include "tests/conformance/kit/strategy_conformance.h"

namespace tandem {
namespace {

const StrategyTraits kMirrored{.name = "mirrored"};
const StrategyTraits kOneDevice{.name = "one_device", .max_replicas = 1};
const StrategyTraits kMultiWorker{.name = "multi_worker_mirrored", .spans_workers = true};
const StrategyTraits kCentral{.name = "central_storage", .replicates_variables = false};
const StrategyTraits kServer{.name = "parameter_server", .replicates_variables = false, .uses_servers = true};
const StrategyTraits kSynchronousServer{.name = "parameter_server",
                                        .replicates_variables = false,
                                        .spans_workers = true,
                                        .uses_servers = true,
                                        .options = {.updates = VariableUpdates::synchronous}};

INSTANTIATE_TEST_SUITE_P(Mirrored, StrategyConformance, testing::ValuesIn(in_every_world(kMirrored)),
                         StrategyConformance::name);
INSTANTIATE_TEST_SUITE_P(OneDevice, StrategyConformance, testing::ValuesIn(in_every_world(kOneDevice)),
                         StrategyConformance::name);
INSTANTIATE_TEST_SUITE_P(MultiWorker, StrategyConformance, testing::ValuesIn(in_every_world(kMultiWorker)),
                         StrategyConformance::name);
INSTANTIATE_TEST_SUITE_P(Central, StrategyConformance, testing::ValuesIn(in_every_world(kCentral)),
                         StrategyConformance::name);
INSTANTIATE_TEST_SUITE_P(Server, StrategyConformance, testing::ValuesIn(in_every_world(kServer)),
                         StrategyConformance::name);
INSTANTIATE_TEST_SUITE_P(SynchronousServer, StrategyConformance, testing::ValuesIn(in_every_world(kSynchronousServer)),
                         StrategyConformance::name);
INSTANTIATE_TEST_SUITE_P(All, StrategyAtScale, testing::Values(kMirrored, kOneDevice, kMultiWorker, kCentral, kServer),
                         StrategyAtScale::name);

// A coordinator schedules the whole program on its only worker.
class CoordinatedPrograms : public ReachingOthers<InEveryWorld> {};
INSTANTIATE_TEST_SUITE_P(Worlds, CoordinatedPrograms, testing::ValuesIn(built_worlds()), name_of_world);

TEST_P(CoordinatedPrograms, ComeToWhatTheyMust) {
  for (const int replicas : {1, 2}) {
    EngineOptions options = world_options(GetParam(), 3, replicas);
    options.workers[0].job = "chief";
    options.workers[1].job = "worker";
    options.workers[2].job = "ps";
    options.workers[0].device_count = options.workers[2].device_count = 0;
    options.workers[1].task = options.workers[2].task = 0;
    const ProgramWorld world{
        .replicas = replicas,
        .replicates_variables = false,
        .where = fmt::format("a coordinator with {} replicas in world {}", replicas, GetParam().name)};
    expect_drawn_programs(world, [&](const auto& program) {
      open_engine(GetParam().engine, options)->run([&](Worker& worker) {
        if (worker.job() != "chief") return;
        ParameterServerStrategyV2 strategy(worker);
        ClusterCoordinator::coordinate(strategy, [&](ClusterCoordinator& coordinator) {
          coordinator.schedule([&] {
            program(worker, strategy);
            return Value();
          });
          coordinator.join();
        });
      });
    });
  }
}

}  // namespace
}  // namespace tandem
