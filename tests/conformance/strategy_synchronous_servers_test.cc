// Parameter servers with synchronous updates: each worker finds in every step what all workers' gradients have come to,
// however many workers and servers there are and in whatever order the workers come.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <unistd.h>
#include <filesystem>

#include "strategies/base/errors.h"
#include "strategies/cross_device/host_values.h"
#include "strategies/servers/parameter_server.h"
#include "strategies/types/multi_worker_mirrored.h"
#include "strategies/variables/checkpoint.h"
#include "strategies/variables/gradient_updates.h"
#include "tests/conformance/optimizer_testing.h"
#include "tests/conformance/strategy_testing.h"

namespace tandem {
namespace {

using testing::Each;
using testing::HasSubstr;

class SynchronousServers : public ReachingOthers<InEveryWorld> {
 protected:
  using Part = std::function<void(Worker& worker, Strategy& strategy)>;

  EngineOptions options(int workers, int servers, int devices) const {
    EngineOptions options = world_options(GetParam(), workers + servers, devices);
    for (int server = 0; server < servers; ++server) {
      WorkerSpec& spec = options.workers[static_cast<std::size_t>(workers + server)];
      spec.job = "ps";
      spec.task = server;
      spec.device_count = 0;
    }
    options.deadlock_timeout_s = 20;
    return options;
  }

  void run(int workers, int servers, int devices, const Part& part) const {
    open_engine(GetParam().engine, options(workers, servers, devices))->run([&](Worker& worker) {
      if (worker.job() == "ps") return;
      ParameterServerStrategy strategy(worker, {}, {.updates = VariableUpdates::synchronous});
      part(worker, strategy);
    });
  }
};
INSTANTIATE_TEST_SUITE_P(Worlds, SynchronousServers, testing::ValuesIn(built_worlds()), name_of_world);

// Some work on a device that differs among workers and steps, so that each is the last one at some time.
void dawdle(Device& device, int worker, int step) {
  for (int i = 0; i < (worker * 5 + step * 3) % 7; ++i) filled(device, {20000}, i);
}

using Variables = std::vector<std::shared_ptr<Variable>>;

// Each replica adds its number, from 1 on, to every element in each step; whole numbers, so that sums are exact.
Variables expect_sums(Worker& worker, Strategy& strategy, int steps) {
  Variables variables;
  for (const int size : {7, 500, 64}) {
    variables.push_back(strategy.create_variable({.name = "v", .shape = {size}, .initial_value = {}}));
  }
  const int replicas = strategy.num_replicas_in_sync();
  const int sum = replicas * (replicas + 1) / 2;
  GradientUpdates updates;
  for (int step = 0; step < steps; ++step) {
    strategy.run([&](const Value::Parts&) {
      Device& device = get_replica_context()->device();
      std::vector<Tensor> gradients;
      for (const auto& variable : variables) {
        EXPECT_THAT(floats_of(worker, variable->value()), Each(static_cast<float>(step * sum)));
        gradients.push_back(filled(device, variable->shape(), replica_id() + 1));
      }
      dawdle(device, worker.index(), step);
      updates.begin(variables, gradients);
      updates.apply([](Variable& changed, const Tensor& gradient) { changed.assign_add(gradient); });
      return Value();
    });
  }
  for (const auto& variable : variables) {
    EXPECT_THAT(floats_of(worker, variable->read()), Each(static_cast<float>(steps * sum)));
  }
  return variables;
}

TEST_P(SynchronousServers, EveryWorkerReadsTheSumOfAllInEveryStep) {
  for (int workers = 1; workers <= 4; ++workers) {
    for (int servers = 1; servers <= 3; ++servers) {
      SCOPED_TRACE(fmt::format("{} workers, {} servers", workers, servers));
      run(workers, servers, 1, [](Worker& worker, Strategy& strategy) { expect_sums(worker, strategy, 5); });
    }
  }
  run(2, 2, 2, [](Worker& worker, Strategy& strategy) {
    EXPECT_EQ(strategy.num_replicas_in_sync(), 4);
    expect_sums(worker, strategy, 3);
  });
}

TEST_P(SynchronousServers, UpdatesAreNeverStale) {
  run(3, 2, 1, [](Worker& worker, Strategy& strategy) {
    const Variables variables = expect_sums(worker, strategy, 4);
    const auto& servers = static_cast<const ParameterServerStrategy&>(strategy);
    const double updates = static_cast<double>(servers.staleness().updates);
    EXPECT_EQ(strategy.reduce(ReduceOp::sum, Value(updates)).number(), 3 * 4)
        << "each of 3 variables in each of 4 steps, by one worker";
    EXPECT_EQ(servers.staleness().maximum, 0);
  });
}

std::vector<float> trained(Worker& worker, Strategy& strategy, optimizers::Optimizer& optimizer) {
  const auto w = optimizer_testing::weights(strategy, "w", {3});
  for (int step = 0; step < 4; ++step) {
    strategy.run([&](const Value::Parts&) {
      const double size = replica_id() + 1;
      optimizer.apply_gradients({{optimizer_testing::gradient_of({size, 2 * size, -size}), w}});
      return Value();
    });
  }
  return floats_of(worker, w->read());
}

TEST_P(SynchronousServers, OptimizersComeToWhatMirroredWorkersDo) {
  for (const auto& [name, make] : optimizer_testing::every_optimizer()) {
    std::vector<float> expected;
    open_engine(GetParam().engine, options(2, 0, 2))->run([&expected, &make = make](Worker& worker) {
      MultiWorkerMirroredStrategy strategy(worker);
      const auto optimizer = make();
      const std::vector<float> values = trained(worker, strategy, *optimizer);
      if (worker.index() == 0) expected = values;
    });
    run(2, 2, 2, [&, &name = name, &make = make](Worker& worker, Strategy& strategy) {
      const auto optimizer = make();
      const std::vector<float> values = trained(worker, strategy, *optimizer);
      if (worker.index() == 0) {
        EXPECT_EQ(values, expected) << name;
      }
    });
  }
}

TEST_P(SynchronousServers, OtherValuesAreThoseOfAllWorkers) {
  run(3, 1, 1, [](Worker& worker, Strategy& strategy) {
    const double mine = worker.index() + 1;
    EXPECT_EQ(strategy.reduce(ReduceOp::sum, Value(mine)).number(), 6);
    const auto v = strategy.create_variable(
        {.name = "v", .shape = {4}, .initial_value = {}, .aggregation = VariableAggregation::sum});
    v->assign(Value(2.0));
    EXPECT_THAT(floats_of(worker, v->read()), Each(2));
    v->assign_add(Value(1.0));
    EXPECT_THAT(floats_of(worker, v->read()), Each(3)) << "once, not by each worker";
    strategy.run([&](const Value::Parts&) {
      v->assign_add(filled(get_replica_context()->device(), {4}, mine));
      return Value();
    });
    EXPECT_THAT(floats_of(worker, v->read()), Each(9));
    const Value sum =
        strategy.run([&](const Value::Parts&) { return filled(get_replica_context()->device(), {2}, mine); });
    const Tensor on_server = strategy.extended().reduce_to(ReduceOp::sum, sum, Destinations(v)).tensor();
    EXPECT_EQ(&on_server.device(), v->devices().front());
  });
}

TEST_P(SynchronousServers, ARestoredCheckpointIsThereForAll) {
  const std::string file =
      (std::filesystem::temp_directory_path() / fmt::format("tandem_sync_{}_{}", GetParam().name, ::getppid()))
          .string();
  run(2, 2, 1, [&](Worker& worker, Strategy& strategy) {
    const auto v = strategy.create_variable(
        {.name = "v", .shape = {4}, .initial_value = {}, .aggregation = VariableAggregation::sum});
    v->assign(Value(5.0));
    Checkpoint checkpoint(worker);
    checkpoint.add("v", v);
    checkpoint.save(file);
    strategy.reduce(ReduceOp::sum, Value(0.0));  // the file is there
    v->assign(Value(7.0));
    checkpoint.restore(file);
    EXPECT_THAT(floats_of(worker, v->read()), Each(5));
    expect_sums(worker, strategy, 2);
  });
  std::filesystem::remove(file);
}

// It waits for nobody.
TEST_P(SynchronousServers, AloneAWorkerMayComputeOnSomeOfItsDevices) {
  open_engine(GetParam().engine, options(1, 1, 4))->run([](Worker& worker) {
    if (worker.job() == "ps") return;
    ParameterServerStrategy strategy(worker, {worker.devices()[0], worker.devices()[1]},
                                     {.updates = VariableUpdates::synchronous});
    expect_sums(worker, strategy, 2);
  });
}

TEST_P(SynchronousServers, WorkersOfOtherSizesAreRefused) {
  EngineOptions two = options(2, 1, 2);
  two.workers[1].device_count = 1;
  EXPECT_THAT(message_of<Error>([&] {
                open_engine(GetParam().engine, two)->run([&](Worker& worker) {
                  if (worker.job() == "ps") return;
                  const ParameterServerStrategy strategy(worker, {}, {.updates = VariableUpdates::synchronous});
                });
              }),
              HasSubstr("synchronous updates need workers that compute on as many devices each"));
}

}  // namespace
}  // namespace tandem
