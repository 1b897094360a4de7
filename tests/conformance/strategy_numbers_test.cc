// Numbers in reductions, and values of one replica, in every world and with every strategy: they behave as tensors do.
#include <gmock/gmock.h>

#include "strategies/base/errors.h"
#include "strategies/cross_device/host_values.h"
#include "strategies/servers/parameter_server.h"
#include "strategies/servers/parameter_server_v2.h"
#include "strategies/strategy/default_strategy.h"
#include "strategies/strategy/replica_context.h"
#include "strategies/types/central_storage.h"
#include "strategies/types/mirrored.h"
#include "strategies/types/multi_worker_mirrored.h"
#include "strategies/types/one_device.h"
#include "tests/conformance/strategy_testing.h"

namespace tandem {
namespace {

using testing::Each;
using testing::ElementsAre;

std::vector<double> numbers_of(const Value& value) {
  std::vector<double> numbers;
  for (const Value& part : value.parts()) numbers.push_back(part.number());
  return numbers;
}

// Strategies of two replicas that one worker has.
std::vector<std::unique_ptr<Strategy>> strategies_of_one_worker(Worker& worker) {
  std::vector<std::unique_ptr<Strategy>> strategies;
  strategies.push_back(std::make_unique<MirroredStrategy>(worker, devices_of(worker)));
  strategies.push_back(std::make_unique<MultiWorkerMirroredStrategy>(worker));
  strategies.push_back(std::make_unique<CentralStorageStrategy>(worker, devices_of(worker)));
  strategies.push_back(std::make_unique<ParameterServerStrategy>(worker, devices_of(worker)));
  return strategies;
}

TEST_P(Strategies, NumbersAreReducedToDestinationsAndToNone) {
  run(2, [](Worker& worker) {
    for (const auto& strategy : strategies_of_one_worker(worker)) {
      SCOPED_TRACE(strategy->name());
      StrategyExtended& extended = strategy->extended();
      const Value ids = strategy->run([](const Value::Parts&) { return Value(1.0 + 2 * replica_id()); });
      EXPECT_EQ(extended.reduce_to(ReduceOp::sum, ids).number(), 4);
      EXPECT_EQ(extended.reduce_to("mean", ids).number(), 2);
      EXPECT_EQ(extended.reduce_to(ReduceOp::sum, ids, worker.cpu()).number(), 4);
      EXPECT_EQ(extended.reduce_to(ReduceOp::mean, Value::literal(3)).number(), 3);
      EXPECT_EQ(extended.reduce_to(ReduceOp::sum, Value::literal(0)).number(), 0);
      EXPECT_THROW(extended.reduce_to(ReduceOp::sum, Value::literal(3)), ValueError);
      EXPECT_EQ(extended.reduce_to(ReduceOp::mean, Value::mirrored({Value(3), Value(3)})).parts().size(), 2U);
      EXPECT_THROW(extended.reduce_to(ReduceOp::sum, Value::mirrored({Value(3), Value(3)})), AssertionError);
      const Value nested = extended.reduce_to(ReduceOp::sum, Value::map({{"a", ids}, {"b", Value::list({ids})}}));
      EXPECT_EQ(nested.fields().at("b").parts()[0].number(), 4);

      const Value tensors = strategy->run(
          [](const Value::Parts&) { return Value(filled(get_replica_context()->device(), {1}, 1 + replica_id())); });
      const std::vector<Value> sums = extended.batch_reduce_to(
          ReduceOp::sum, {{ids, {}}, {tensors, worker.cpu()}, {Value::literal(0), {}}, {ids, Destinations(tensors)}});
      EXPECT_EQ(sums[0].number(), 4);
      EXPECT_EQ(floats_of(worker, sums[1].tensor()), std::vector<float>{3});
      EXPECT_EQ(sums[2].number(), 0);
      EXPECT_THAT(numbers_of(sums[3]), ElementsAre(4, 4)) << "on two devices";
      EXPECT_THROW(extended.reduce_to(ReduceOp::sum, tensors), ValueError) << "tensors need a destination";
    }
  });
}

TEST_P(Strategies, StrategiesOfOneReplicaReduceANumberToItself) {
  run(1, [](Worker& worker) {
    OneDeviceStrategy one(worker, *worker.devices()[0]);
    for (Strategy* strategy : {static_cast<Strategy*>(&one), &default_strategy()}) {
      SCOPED_TRACE(strategy->name());
      const Value number = strategy->run([](const Value::Parts&) { return Value(3); });
      EXPECT_EQ(strategy->extended().reduce_to(ReduceOp::sum, number).number(), 3);
      EXPECT_EQ(strategy->extended().reduce_to(ReduceOp::sum, number, worker.cpu()).number(), 3);
      const ReducePair pair = {number, {}};
      EXPECT_EQ(strategy->extended().batch_reduce_to(ReduceOp::mean, {pair}).front().number(), 3);
      EXPECT_EQ(strategy->reduce(ReduceOp::sum, number).number(), 3);
    }
  });
}

TEST_P(Strategies, NumbersOfAllReduceAreOnePerReplicaAsTensorsAre) {
  run(2, [](Worker& worker) {
    for (const auto& strategy : strategies_of_one_worker(worker)) {
      SCOPED_TRACE(strategy->name());
      const Value captured = filled(*worker.devices()[0], {1}, 5);
      const Value results = strategy->run([&](const Value::Parts&) {
        ReplicaContext& context = *get_replica_context();
        return Value::tuple({context.all_reduce(ReduceOp::sum, Value(1.0 + replica_id())),
                             context.all_reduce(ReduceOp::sum, filled(context.device(), {1}, 1 + replica_id())),
                             context.all_reduce(ReduceOp::sum, Value::literal(5)),
                             context.all_reduce(ReduceOp::mean, Value::literal(5)),
                             context.all_reduce(ReduceOp::sum, captured)});
      });
      ASSERT_TRUE(results.parts()[0].is(ValueKind::per_replica));
      EXPECT_EQ(results.parts()[1].kind(), results.parts()[0].kind()) << "tensors";
      EXPECT_THAT(numbers_of(results.parts()[0]), Each(3));
      EXPECT_EQ(strategy->reduce(ReduceOp::sum, results.parts()[0]).number(), 6);
      EXPECT_EQ(strategy->reduce(ReduceOp::mean, results.parts()[0]).number(), 3);
      EXPECT_EQ(floats_of(worker, strategy->reduce(ReduceOp::sum, results.parts()[1]).tensor()), std::vector<float>{6});
      EXPECT_THAT(numbers_of(results.parts()[2]), ElementsAre(10, 10)) << "counts once for each replica";
      EXPECT_THAT(numbers_of(results.parts()[3]), ElementsAre(5, 5));
      for (const Value& part : results.parts()[4].parts()) {
        EXPECT_EQ(floats_of(worker, part.tensor()), std::vector<float>{10}) << "counts once for each replica";
      }
    }
  });
}

TEST_P(Strategies, ValuesFromAFunctionAreWrappedWithOneReplicaToo) {
  run(1, [](Worker& worker) {
    for (const auto& strategy : strategies_of_one_worker(worker)) {
      SCOPED_TRACE(strategy->name());
      const auto id = [](const ValueContext& context) { return Value(7 + context.replica_id_in_sync_group()); };
      const Value ids = strategy->experimental_distribute_values_from_function(id);
      ASSERT_TRUE(ids.is(ValueKind::per_replica));
      EXPECT_THAT(numbers_of(ids), ElementsAre(7));
      EXPECT_EQ(strategy->run([](const Value::Parts& arguments) { return arguments[0]; }, {ids}).number(), 7);
      EXPECT_EQ(strategy->reduce(ReduceOp::sum, ids).number(), 7);
      const Value nested = strategy->experimental_distribute_values_from_function(
          [](const ValueContext&) { return Value::list({Value::literal(1)}); });
      EXPECT_TRUE(nested.parts()[0].is(ValueKind::per_replica));
    }
    OneDeviceStrategy one(worker, *worker.devices()[0]);
    const auto seven = [](const ValueContext&) { return Value(7); };
    EXPECT_TRUE(one.experimental_distribute_values_from_function(seven).is(ValueKind::number));
    EXPECT_TRUE(default_strategy().experimental_distribute_values_from_function(seven).is(ValueKind::number));
  });
}

// The value of each component of a plain variable.
std::vector<double> values_of(Worker& worker, const std::shared_ptr<Variable>& variable) {
  return host_values(worker, variable->read());
}

TEST_P(Strategies, UpdateOfAPlainVariableCallsTheFunctionOnce) {
  run(2, [](Worker& worker) {
    OneDeviceStrategy one(worker, *worker.devices()[0]);
    CentralStorageStrategy central(worker, devices_of(worker));
    ParameterServerStrategy servers(worker, devices_of(worker));
    for (Strategy* strategy : {static_cast<Strategy*>(&one), static_cast<Strategy*>(&central),
                               static_cast<Strategy*>(&servers), &default_strategy()}) {
      SCOPED_TRACE(strategy->name());
      const auto plain = create_variable({.name = "plain", .shape = {2}});
      int calls = 0;
      const auto add = [&](Variable& variable, const Value::Parts& arguments) -> Value {
        ++calls;
        EXPECT_EQ(&variable, plain.get());
        return variable.assign_add(arguments[0]);
      };
      strategy->extended().update(plain, add, {Value(3)});
      strategy->extended().update(plain, add, {filled(*worker.devices()[0], {2}, 4)});
      EXPECT_EQ(calls, 2);
      EXPECT_THAT(values_of(worker, plain), ElementsAre(7, 7));
      const Value ungrouped = strategy->extended().update(plain, add, {Value(1)}, false);
      EXPECT_EQ(ungrouped.parts().size(), 1U);
      EXPECT_THAT(values_of(worker, plain), ElementsAre(8, 8));
    }
    MirroredStrategy mirrored(worker, devices_of(worker));
    const auto plain = create_variable({.name = "plain", .shape = {2}});
    EXPECT_EQ(message_of<AssertionError>(
                  [&] { mirrored.extended().update(plain, [](Variable&, const Value::Parts&) { return Value(); }); }),
              "update() of variable 'plain', which was not created under this strategy: it has no component on each of "
              "its devices; create it inside the strategy's scope");
    const auto foreign = mirrored.create_variable({.name = "foreign", .shape = {2}});
    EXPECT_EQ(message_of<ValueError>(
                  [&] { central.extended().update(foreign, [](Variable&, const Value::Parts&) { return Value(); }); }),
              "update() of variable 'foreign', which is mirrored and was not created under this 'central_storage' "
              "strategy: create it inside the strategy's scope");
  });
}

// Several workers: one replica on each, then two.
class NumbersOfWorkers : public InEveryWorld {};
INSTANTIATE_TEST_SUITE_P(Worlds, NumbersOfWorkers, testing::ValuesIn(built_worlds()), name_of_world);

TEST_P(NumbersOfWorkers, AreReducedOverAll) {
  for (const int devices : {1, 2}) {
    SCOPED_TRACE(devices);
    open_world(GetParam(), 2, devices)->run([devices](Worker& worker) {
      MultiWorkerMirroredStrategy strategy(worker);
      StrategyExtended& extended = strategy.extended();
      const double sum = devices == 1 ? 3 : 10;
      const Value ids = strategy.run([](const Value::Parts&) { return Value(1.0 + replica_id()); });
      EXPECT_EQ(extended.reduce_to(ReduceOp::sum, ids).number(), sum);
      EXPECT_EQ(extended.reduce_to(ReduceOp::sum, ids, worker.cpu()).number(), sum);
      EXPECT_EQ(extended.reduce_to(ReduceOp::mean, ids).number(), sum / (2 * devices));
      EXPECT_EQ(extended.reduce_to(ReduceOp::sum, Value::literal(1)).number(), 2) << "once for each worker";
      const Value sums = strategy.run(
          [](const Value::Parts&) { return get_replica_context()->all_reduce(ReduceOp::sum, 1.0 + replica_id()); });
      EXPECT_EQ(strategy.reduce(ReduceOp::sum, sums).number(), sum * 2 * devices);
      const Value shared = strategy.run(
          [](const Value::Parts&) { return get_replica_context()->all_reduce(ReduceOp::sum, Value::literal(1)); });
      for (const Value& part : strategy.experimental_local_results(shared)) EXPECT_EQ(part.number(), 2 * devices);
      const Value from_function = strategy.experimental_distribute_values_from_function(
          [](const ValueContext& context) { return Value(context.replica_id_in_sync_group()); });
      EXPECT_EQ(from_function.parts().size(), static_cast<std::size_t>(devices));
    });
  }
}

class NumbersOfServers : public ReachingOthers<InEveryWorld> {};
INSTANTIATE_TEST_SUITE_P(Worlds, NumbersOfServers, testing::ValuesIn(built_worlds()), name_of_world);

TEST_P(NumbersOfServers, AreReducedOnTheirWorker) {
  EngineOptions options = world_options(GetParam(), 3, 2);
  options.workers[0].job = "chief";
  options.workers[0].task = 0;
  options.workers[1] = {
      .job = "worker", .task = 0, .topology_worker = 1, .device_type = GetParam().compute_devices, .device_count = 2};
  options.workers[2] = {.job = "ps", .task = 0, .topology_worker = 2, .device_count = 0};
  open_engine(GetParam().engine, options)->run([](Worker& worker) {
    if (worker.job() == "ps") return;
    ParameterServerStrategy strategy(worker);
    const Value ids = strategy.run([](const Value::Parts&) { return Value(1.0 + 2 * replica_id()); });
    EXPECT_EQ(strategy.extended().reduce_to(ReduceOp::sum, ids).number(), 4);
    const Value sums = strategy.run(
        [](const Value::Parts&) { return get_replica_context()->all_reduce(ReduceOp::sum, 1.0 + replica_id()); });
    EXPECT_EQ(strategy.reduce(ReduceOp::sum, sums).number(), 6);
    if (worker.job() != "chief") return;
    ParameterServerStrategyV2 coordinator(worker);
    const Value parts = Value::per_replica({Value(1), Value(2)});
    EXPECT_EQ(coordinator.extended().reduce_to(ReduceOp::sum, parts).number(), 3);
    EXPECT_EQ(coordinator.extended().reduce_to(ReduceOp::mean, Value::literal(2)).number(), 2);
  });
}

}  // namespace
}  // namespace tandem
