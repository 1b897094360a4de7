// Optimizers in every world, under every kind of strategy: the first updates are those of the formulas, and replicas
// learn what one device learns from the whole batch.
#include <gmock/gmock.h>

#include "strategies/servers/parameter_server.h"
#include "strategies/types/multi_worker_mirrored.h"
#include "tests/conformance/optimizer_testing.h"

namespace tandem {
namespace {

using namespace optimizer_testing;
using testing::ElementsAre;
using testing::Pointwise;

struct FirstUpdates {
  MakeOptimizer make;
  Numbers gradients, values;  // from w = 1, a step each
};

// Computed by hand from the formulas of optimizers.h; the numbers are exact but for Adam's, where epsilon enters.
std::vector<FirstUpdates> first_updates() {
  using namespace optimizers;
  return {
      {making<SGD>(SGDOptions{.learning_rate = 0.5}), {1, -2}, {0.5, 1.5}},
      // m = -1/2, then -3/4
      {making<SGD>(SGDOptions{.learning_rate = 0.5, .momentum = 0.5}), {1, 1}, {0.5, -0.25}},
      // 1 - 1/4 - 1/2, then - 3/8 - 1/2
      {making<SGD>(SGDOptions{.learning_rate = 0.5, .momentum = 0.5, .nesterov = true}), {1, 1}, {0.25, -0.625}},
      // a = 16 + 9 = 25, then 25 + 144 = 169
      {making<Adagrad>(AdagradOptions{.learning_rate = 1, .initial_accumulator_value = 16, .epsilon = 0}),
       {3, 12},
       {1 - 3.0 / 5, 1 - 3.0 / 5 - 12.0 / 13}},
      // epsilon is added to the root: 2 / (2 + 2)
      {making<Adagrad>(AdagradOptions{.learning_rate = 1, .initial_accumulator_value = 0, .epsilon = 2}), {2}, {0.5}},
      // r = 4/4 = 1, then 3/4 + 13/4 = 4
      {making<RMSprop>(RMSpropOptions{.learning_rate = 0.25, .rho = 0.75, .epsilon = 0}),
       {2, std::sqrt(13.0)},
       {0.5, 0.5 - std::sqrt(13.0) / 8}},
      // r = 2, c = 1, d = 1
      {making<RMSprop>(RMSpropOptions{.learning_rate = 0.25, .rho = 0.5, .epsilon = 0, .centered = true}), {2}, {0.5}},
      // epsilon is under the root: d = 1 + 3; m = 2/2 / 4, then r = 1, c = 0.5, d = 0.75, m = 1/8 + 0
      {making<RMSprop>(
           RMSpropOptions{.learning_rate = 0.25, .rho = 0.5, .momentum = 0.5, .epsilon = 3, .centered = true}),
       {2, 0},
       {0.75, 0.625}},
      // Corrected for their bias, m and v of the first step are g and g^2.
      {making<Adam>(AdamOptions{.learning_rate = 0.25, .epsilon = 0}), {8}, {0.75}},
      // m = 2 (1/4) = 1/2, v = 4 (3/4) = 3; rate sqrt(1/4 + 3/4 ...): t = 1: 1/4 sqrt(3/4) / (1/4) = sqrt(3/4)
      {making<Adam>(AdamOptions{.learning_rate = 0.25, .beta_1 = 0.75, .beta_2 = 0.25, .epsilon = 0}),
       {2, 0},
       // t = 2: m = 3/8, v = 3/4; rate = 1/4 sqrt(15/16) / (7/16)
       {0.75, 0.75 - 0.25 * std::sqrt(15.0 / 16) / (7.0 / 16) * (3.0 / 8) / std::sqrt(0.75)}},
      // vhat stays 3
      {making<Adam>(AdamOptions{.learning_rate = 0.25, .beta_1 = 0.75, .beta_2 = 0.25, .epsilon = 0, .amsgrad = true}),
       {2, 0},
       {0.75, 0.75 - 0.25 * std::sqrt(15.0 / 16) / (7.0 / 16) * (3.0 / 8) / std::sqrt(3.0)}},
      // 1 - 1/4 * 2, and then Adam's step
      {making<AdamW>(AdamWOptions{.weight_decay = 2, .adam = {.learning_rate = 0.25, .epsilon = 0}}), {8}, {0.25}},
  };
}

TEST_P(Strategies, OptimizersBeginAsTheirFormulasSay) {
  run(2, [](Worker& worker) {
    under_each_strategy_of(worker, [&](Strategy& strategy) {
      std::size_t number = 0;
      for (const FirstUpdates& updates : first_updates()) {
        SCOPED_TRACE("optimizer " + std::to_string(number++));
        const auto optimizer = updates.make();
        const auto w = weights(strategy, "w" + std::to_string(number), {1});
        for (std::size_t i = 0; i < updates.gradients.size(); ++i) {
          step(strategy, *optimizer, w, {updates.gradients[i]});
          for (const Numbers& component : component_numbers(worker, *w)) {
            EXPECT_NEAR(component.front(), updates.values[i], 5e-7) << "step " << i + 1;  // a few units of f32
          }
        }
        EXPECT_EQ(host_number(worker, optimizer->iterations()->read()), static_cast<double>(updates.values.size()));
      }
    });
  });
}

TEST_P(Strategies, ReplicasLearnWhatOneDeviceLearnsFromTheWholeBatch) {
  run(4, [](Worker& worker) {
    for (const auto& [name, make] : every_optimizer()) {
      SCOPED_TRACE(name);
      OneDeviceStrategy one(worker, *worker.devices()[0]);
      const Numbers expected = trained(worker, one, *make(), "w");
      EXPECT_LT(expected[kSteps - 1], expected[0]);
      for (const std::size_t replicas : {1, 2, 4}) {
        const std::vector<Device*> all = devices_of(worker);
        const std::vector<Device*> devices(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(replicas));
        MirroredStrategy mirrored(worker, devices);
        CentralStorageStrategy central(worker, devices);
        EXPECT_THAT(trained(worker, mirrored, *make(), "w"), Pointwise(IsNearTo(kRounding), expected)) << replicas;
        EXPECT_THAT(trained(worker, central, *make(), "w"), Pointwise(IsNearTo(kRounding), expected)) << replicas;
      }
    }
  });
}

TEST_P(Strategies, WorkersLearnWhatOneDeviceLearnsFromTheWholeBatch) {
  open_world(GetParam(), 2, 2)->run([](Worker& worker) {
    for (const auto& [name, make] : every_optimizer()) {
      SCOPED_TRACE(name);
      OneDeviceStrategy one(worker, *worker.devices()[0]);
      MultiWorkerMirroredStrategy both(worker);
      const Numbers expected = trained(worker, one, *make(), "w");
      EXPECT_THAT(trained(worker, both, *make(), "w"), Pointwise(IsNearTo(kRounding), expected));
    }
  });
}

class OptimizersOfServers : public ReachingOthers<InEveryWorld> {};
INSTANTIATE_TEST_SUITE_P(Worlds, OptimizersOfServers, testing::ValuesIn(built_worlds()), name_of_world);

// A worker and two servers: the slots are on the server of their variable, or of their shard.
TEST_P(OptimizersOfServers, KeepSlotsOnTheServerOfTheirVariable) {
  EngineOptions options = world_options(GetParam(), 3, 2);
  for (int server = 0; server < 2; ++server) {
    WorkerSpec& spec = options.workers[static_cast<std::size_t>(server) + 1];
    spec.job = "ps";
    spec.task = server;
    spec.device_count = 0;
  }
  open_engine(GetParam().engine, std::move(options))->run([](Worker& worker) {
    if (worker.job() == "ps") return;
    OneDeviceStrategy one(worker, *worker.devices()[0]);
    ParameterServerStrategy servers(worker, {}, {.partitioner = FixedShardsPartitioner(2)});
    for (const auto& [name, make] : every_optimizer()) {
      SCOPED_TRACE(name);
      const Numbers expected = trained(worker, one, *make(), "one_" + name);
      EXPECT_THAT(trained(worker, servers, *make(), "w_" + name), Pointwise(IsNearTo(kRounding), expected));

      const ShardedVariable table = servers.create_sharded_variable({.name = "table_" + name, .shape = {4, 2}});
      const auto reference = one.create_variable({.name = "table", .shape = {4, 2}});
      const auto sharded = make(), single = make();
      for (const double scale : {1.0, -2.0}) {
        servers.run([&](const Value::Parts&) -> Value {
          sharded->apply_gradients(optimizers::gradients_of_shards(slices(scale, 2, 4), table));
          return {};
        });
        one.run([&](const Value::Parts&) -> Value {
          single->apply_gradients({{slices(scale, 2, 4), reference}});
          return {};
        });
      }
      EXPECT_THAT(host_values(worker, table.concatenated_on(worker.cpu())),
                  Pointwise(IsNearTo(kRounding), host_values(worker, reference->read())));
      for (const auto& shard : table.variables()) {
        for (const std::string& slot : sharded->get_slot_names()) {
          EXPECT_EQ(sharded->get_slot(shard, slot)->devices(), shard->devices());
        }
      }
      EXPECT_NE(table.variables()[0]->devices(), table.variables()[1]->devices());
    }
    optimizers::SGD clipping({.learning_rate = -1, .clipping = {.global_clipnorm = 6.5}});
    const auto a = servers.create_variable({.name = "a", .shape = {2}});
    const auto b = servers.create_variable({.name = "b", .shape = {1}});
    servers.run([&](const Value::Parts&) -> Value {
      clipping.apply_gradients({{gradient_of(shared_out({3, 4})), a}, {gradient_of(shared_out({12})), b}});
      return {};
    });
    EXPECT_THAT(host_values(worker, a->read()), ElementsAre(1.5, 2));
    EXPECT_THAT(host_values(worker, b->read()), ElementsAre(6));
  });
}

}  // namespace
}  // namespace tandem
