// Parameter servers in every world, be the workers in one process or in several.
#include <gmock/gmock.h>

#include "strategies/servers/cluster_coordinator.h"
#include "strategies/servers/parameter_server.h"
#include "strategies/strategy/context.h"
#include "tests/conformance/strategy_testing.h"

namespace tandem {
namespace {

using testing::Each;

class Servers : public ReachingOthers<InEveryWorld> {
 protected:
  // One device for each worker and chief; parameter servers only have their CPU.
  void run(const std::vector<WorkerSpec>& cluster, const Program& program) const {
    EngineOptions options = world_options(GetParam(), static_cast<int>(cluster.size()), 1);
    for (std::size_t i = 0; i < cluster.size(); ++i) {
      options.workers[i].job = cluster[i].job;
      options.workers[i].task = cluster[i].task;
      if (cluster[i].job == "ps") options.workers[i].device_count = 0;
    }
    open_engine(GetParam().engine, std::move(options))->run(program);
  }
};
INSTANTIATE_TEST_SUITE_P(Worlds, Servers, testing::ValuesIn(built_worlds()), name_of_world);

// Workers wait for each other nowhere; what they add is all there in the end.
TEST_P(Servers, EveryUpdateOfEveryWorkerIsApplied) {
  static constexpr int kUpdates = 10;
  run({{.job = "worker", .task = 0}, {.job = "worker", .task = 1}, {.job = "ps", .task = 0}, {.job = "ps", .task = 1}},
      [](Worker& worker) {
        if (worker.job() == "ps") return;
        ParameterServerStrategy strategy(worker);
        const auto a = strategy.create_variable({.name = "a", .shape = {500}, .initial_value = {}});
        const auto b = strategy.create_variable({.name = "b", .shape = {3, 100}, .initial_value = [](std::int64_t i) {
                                                   return static_cast<double>(i % 7);
                                                 }});
        EXPECT_EQ(a->devices().front()->id().task, 0);
        EXPECT_EQ(b->devices().front()->id().task, 1);
        for (int i = 0; i < kUpdates; ++i) {
          strategy.run([&](const Value::Parts&) {
            a->assign_add(filled(get_replica_context()->device(), {500}, 1));
            b->assign_sub(filled(get_replica_context()->device(), {3, 100}, 0.5));
            return Value();
          });
        }
        EXPECT_EQ(strategy.staleness().updates, 2 * kUpdates);
        std::vector<DeviceId> workers{worker.devices()[0]->id(), worker.devices()[0]->id()};
        workers[0].task = 0;
        workers[1].task = 1;
        const Tensor meeting = filled(*worker.devices()[0], {1}, 0);
        Stream* const stream = &worker.devices()[0]->compute_stream();
        worker.communicator(workers).all_reduce({&meeting, 1}, Reduction::sum, {&stream, 1});
        stream->synchronize();
        EXPECT_THAT(floats_of(worker, a->read()), Each(2.0F * kUpdates));
        const std::vector<float> left = floats_of(worker, b->read());
        for (std::size_t i = 0; i < left.size(); ++i) EXPECT_EQ(left[i], static_cast<float>(i % 7) - kUpdates);
      });
}

// The coordinator's functions run in the chief's process and compute on the workers' devices, wherever these are.
TEST_P(Servers, FunctionsOfACoordinatorComputeOnTheWorkersDevices) {
  static constexpr int kFunctions = 8;
  run({{.job = "chief", .task = 0},
       {.job = "worker", .task = 0},
       {.job = "worker", .task = 1},
       {.job = "ps", .task = 0}},
      [](Worker& worker) {
        if (worker.job() != "chief") return;
        ParameterServerStrategyV2 strategy(worker);
        const auto total = strategy.create_variable({.name = "total", .shape = {100}, .initial_value = {}});
        ClusterCoordinator::coordinate(strategy, [&](ClusterCoordinator& coordinator) {
          std::vector<RemoteValue> results;
          for (int i = 0; i < kFunctions; ++i) {
            results.push_back(coordinator.schedule([&, i]() -> Value {
              return strategy.run([&](const Value::Parts&) -> Value {
                Device& device = get_replica_context()->device();
                EXPECT_EQ(device.id().job, "worker");
                const Tensor mine = filled(device, {100}, i);
                total->assign_add(mine);
                return mine;
              });
            }));
          }
          coordinator.join();
          for (int i = 0; i < kFunctions; ++i) {
            const Value value = coordinator.fetch(results[static_cast<std::size_t>(i)]);
            EXPECT_THAT(floats_of(worker, value.tensor()), Each(static_cast<float>(i)));
          }
        });
        EXPECT_THAT(floats_of(worker, total->read()), Each(28.0F));
        EXPECT_EQ(strategy.staleness().updates, kFunctions);
      });
}

}  // namespace
}  // namespace tandem
