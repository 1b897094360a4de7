// Functions by name, which workers run for a coordinator, in every world: in one process or in several.
#include "strategies/servers/worker_functions.h"

#include <gmock/gmock.h>

#include "strategies/base/errors.h"
#include "strategies/servers/cluster_coordinator.h"
#include "strategies/servers/server.h"
#include "strategies/strategy/arithmetic.h"
#include "strategies/strategy/context.h"
#include "tests/conformance/strategy_testing.h"

namespace tandem {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

class FunctionsByName : public ReachingOthers<InEveryWorld> {
 protected:
  // Runs a coordinator's program on the chief, with two workers that serve functions, and one parameter server.
  void run(const WorkerFunctions& functions,
           const std::function<void(ParameterServerStrategyV2&, ClusterCoordinator&)>& program, int devices = 1) const {
    EngineOptions options = world_options(GetParam(), 4, devices);
    options.workers[0].job = "chief";
    options.workers[3].job = "ps";
    options.workers[3].device_count = 0;
    options.workers[1].task = 0;
    options.workers[2].task = 1;
    options.workers[3].task = 0;
    open_engine(GetParam().engine, std::move(options))->run([&](Worker& worker) {
      if (worker.job() != "chief") return functions.serve(worker);
      ParameterServerStrategyV2 strategy(worker);
      ClusterCoordinator::coordinate(strategy, [&](ClusterCoordinator& c) { program(strategy, c); });
    });
  }
};
INSTANTIATE_TEST_SUITE_P(Worlds, FunctionsByName, testing::ValuesIn(built_worlds()), name_of_world);

Value nothing(ParameterServerStrategyV2&, const Value::Parts&) {
  return {};
}

TEST_P(FunctionsByName, UpdateTheCoordinatorsVariablesFromTheWorkersProcess) {
  static constexpr int kFunctions = 8;
  WorkerFunctions functions;
  functions.add("add", [](ParameterServerStrategyV2& strategy, const Value::Parts& arguments) {
    EXPECT_EQ(Task::current().worker()->job(), "worker");
    EXPECT_EQ(strategy.scheduled_worker(), Task::current().worker()->task());
    return strategy.run(
        [&](const Value::Parts& mine) -> Value {
          Device& device = get_replica_context()->device();
          EXPECT_EQ(device.worker(), Task::current().worker()->index());
          const Tensor amount = filled(device, {100}, mine[1].number());
          mine[0].variable()->assign_add(amount);
          return amount;
        },
        arguments);
  });
  run(functions, [](ParameterServerStrategyV2& strategy, ClusterCoordinator& coordinator) {
    const auto total = strategy.create_variable({.name = "v", .shape = {100}, .initial_value = {}});
    const auto other = strategy.create_variable({.name = "v", .shape = {100}, .initial_value = {}});
    std::vector<RemoteValue> results;
    for (int i = 0; i < kFunctions; ++i) results.push_back(coordinator.schedule("add", {total, i}));
    coordinator.join();
    Worker& worker = strategy.extended().worker();
    for (int i = 0; i < kFunctions; ++i) {
      const Value value = results[static_cast<std::size_t>(i)].fetch();
      EXPECT_EQ(value.tensor().device().id().job, "worker");
      EXPECT_THAT(floats_of(worker, value.tensor()), Each(static_cast<float>(i)));
    }
    EXPECT_THAT(floats_of(worker, total->read()), Each(28.0F));
    EXPECT_THAT(floats_of(worker, other->read()), Each(0.0F)) << "of the same name, and another variable";
    EXPECT_EQ(strategy.staleness().updates, kFunctions);
  });
}

// Numbers, texts, tensors and slices, nested, with none left out.
TEST_P(FunctionsByName, ArgumentsAndResultsKeepTheirStructure) {
  WorkerFunctions functions;
  functions.add("same", [](ParameterServerStrategyV2&, const Value::Parts& arguments) {
    EXPECT_EQ(arguments.size(), 6U);
    const Value& nest = arguments[3];
    EXPECT_EQ(nest.fields().at("t").tensor().device().worker(), Task::current().worker()->index());
    return Value::tuple(arguments);
  });
  run(functions, [](ParameterServerStrategyV2& strategy, ClusterCoordinator& coordinator) {
    Worker& worker = strategy.extended().worker();
    Device& here = *worker.devices()[0];
    const Tensor indices = worker.cpu().allocate(DType::i64, {1});
    for (std::int64_t& index : indices.values<std::int64_t>()) index = 2;
    const Value slices = IndexedSlices{filled(here, {1, 3}, 7), indices, {4, 3}};
    const Value result =
        coordinator
            .schedule("same", {1.5, 3, std::string("text"), Value::map({{"t", filled(here, {2}, 9)}}, "Batch"),
                               Value::list({Value(), slices}), Value::per_replica({4.0, 5.0}, {"here", "there"})})
            .fetch();
    const Value::Parts& parts = result.parts();
    ASSERT_EQ(parts.size(), 6U);
    EXPECT_EQ(parts[0].number(), 1.5);
    EXPECT_FALSE(parts[0].is_integer());
    EXPECT_EQ(parts[1].number(), 3);
    EXPECT_TRUE(parts[1].is_integer());
    EXPECT_EQ(parts[2].text(), "text");
    EXPECT_EQ(parts[3].type_name(), "Batch");
    EXPECT_THAT(floats_of(worker, parts[3].fields().at("t").tensor()), ElementsAre(9, 9));
    EXPECT_TRUE(parts[4].parts()[0].is(ValueKind::none));
    EXPECT_EQ(parts[4].parts()[1].slices().dense_shape, (Shape{4, 3}));
    EXPECT_THAT(floats_of(worker, parts[4].parts()[1].slices().values), ElementsAre(7, 7, 7));
    EXPECT_EQ(parts[5].parts()[1].number(), 5);
    EXPECT_THAT(parts[5].places(), Each(HasSubstr("/job:worker"))) << "the worker's devices, not the sender's";
  });
}

TEST_P(FunctionsByName, ComputeOnAllDevicesOfTheWorker) {
  WorkerFunctions functions;
  functions.add("sum", [](ParameterServerStrategyV2& strategy, const Value::Parts& arguments) {
    const Value per_replica = strategy.run([](const Value::Parts& mine) { return mine[0] + mine[1]; }, arguments);
    return strategy.reduce(ReduceOp::sum, per_replica);
  });
  run(
      functions,
      [](ParameterServerStrategyV2& strategy, ClusterCoordinator& coordinator) {
        Worker& worker = strategy.extended().worker();
        Device& here = *worker.devices()[0];
        const Value per_replica = Value::per_replica({filled(here, {3}, 1), filled(here, {3}, 10)});
        const Value result = coordinator.schedule("sum", {per_replica, 100}).fetch();
        EXPECT_THAT(floats_of(worker, result.tensor()), ElementsAre(211, 211, 211));
      },
      2);
}

// A result of one worker is another's argument.
TEST_P(FunctionsByName, ResultsAreArgumentsOfOtherWorkers) {
  WorkerFunctions functions;
  functions.add("next", [](ParameterServerStrategyV2& strategy, const Value::Parts& arguments) {
    return strategy.run([](const Value::Parts& mine) { return mine[0] + Value(1); }, arguments);
  });
  run(functions, [](ParameterServerStrategyV2& strategy, ClusterCoordinator& coordinator) {
    Worker& worker = strategy.extended().worker();
    std::vector<Value> values(4, filled(*worker.devices()[0], {2}, 0));
    for (int round = 0; round < 3; ++round) {
      std::vector<RemoteValue> results;
      for (const Value& value : values) results.push_back(coordinator.schedule("next", {value}));
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = results[i].fetch();
    }
    for (const Value& value : values) EXPECT_THAT(floats_of(worker, value.tensor()), ElementsAre(3, 3));
  });
}

TEST_P(FunctionsByName, ErrorsArriveAsWhatTheyAre) {
  WorkerFunctions functions;
  functions.add("value",
                [](ParameterServerStrategyV2&, const Value::Parts&) -> Value { throw ValueError("a wrong value"); });
  functions.add("other", [](ParameterServerStrategyV2&, const Value::Parts&) -> Value {
    throw std::logic_error("an error of somebody's own");
  });
  functions.add("create", [](ParameterServerStrategyV2& strategy, const Value::Parts&) -> Value {
    return strategy.create_variable({.name = "w", .shape = {1}, .initial_value = {}});
  });
  run(functions, [](ParameterServerStrategyV2& strategy, ClusterCoordinator& coordinator) {
    const auto fails = [&](const std::string& name, const Value::Parts& arguments = {}) {
      const RemoteValue result = coordinator.schedule(name, arguments);
      EXPECT_ANY_THROW(coordinator.join());
      return [result] { result.fetch(); };
    };
    EXPECT_THAT(fails("value"), ThrowsMessage<ValueError>("a wrong value"));
    EXPECT_THAT(fails("other"), ThrowsMessage<RuntimeError>("an error of somebody's own"));
    EXPECT_THAT(fails("create"), ThrowsMessage<ValueError>(HasSubstr("creates no variable, 'w'")));
    EXPECT_THAT(fails("unknown"), ThrowsMessage<NotFoundError>(AllOf(HasSubstr("serves no function 'unknown'"),
                                                                     HasSubstr("known: create, other, value"))));
    const auto constrained = strategy.create_variable(
        {.name = "c", .shape = {1}, .initial_value = {}, .constraint = [](const Tensor& value) { return value; }});
    EXPECT_THAT([&] { coordinator.schedule("value", {constrained}); },
                ThrowsMessage<TypeError>(HasSubstr("its constraint is a function")));
    ParameterServerStrategyV2 another(strategy.extended().worker());
    const auto foreign = another.create_variable({.name = "f", .shape = {1}, .initial_value = {}});
    EXPECT_THAT([&] { coordinator.schedule("value", {Value::list({foreign})}); },
                ThrowsMessage<TypeError>(HasSubstr("only its own strategy")));
    EXPECT_THAT([&] { coordinator.schedule("value", {Tensor()}); },
                ThrowsMessage<TypeError>(HasSubstr("without memory")));
  });
}

// What a function captures is the worker's own: here, how often the worker has run it.
TEST_P(FunctionsByName, KeepStateFromCallToCall) {
  WorkerFunctions functions;
  functions.add("count", [](ParameterServerStrategyV2&, const Value::Parts&) -> Value {
    const auto count = std::static_pointer_cast<int>(
        Task::current().worker()->shared().kept("count", [] { return std::make_shared<int>(0); }));
    return ++*count;
  });
  run(functions, [](ParameterServerStrategyV2&, ClusterCoordinator& coordinator) {
    std::vector<RemoteValue> results;
    for (int i = 0; i < 10; ++i) results.push_back(coordinator.schedule("count"));
    double highest = 0;
    for (const RemoteValue& result : results) highest = std::max(highest, result.fetch().number());
    EXPECT_GE(highest, 5) << "one of two workers has run at least half of ten calls";
  });
}

// Coordinators one after the other, and at the same time, have the same workers serve them.
TEST_P(FunctionsByName, ServeAllCoordinatorsOfAStrategy) {
  WorkerFunctions functions;
  functions.add("same", [](ParameterServerStrategyV2&, const Value::Parts& arguments) { return arguments[0]; });
  run(functions, [](ParameterServerStrategyV2& strategy, ClusterCoordinator&) {
    ClusterCoordinator::coordinate(strategy, [](ClusterCoordinator& c) { c.schedule([] { return Value(1); }); });
    strategy.extended().worker().tasks().run_concurrently(2, [&](int task) {
      ClusterCoordinator::coordinate(strategy, [task](ClusterCoordinator& coordinator) {
        std::vector<RemoteValue> results;
        for (int i = 0; i < 10; ++i) results.push_back(coordinator.schedule("same", {100 * task + i}));
        for (int i = 0; i < 10; ++i) {
          EXPECT_EQ(results[static_cast<std::size_t>(i)].fetch().number(), 100 * task + i);
        }
      });
    });
  });
}

TEST_P(FunctionsByName, AWorkerThatCoordinatesServesNothing) {
  EngineOptions options = world_options(GetParam(), 2, 1);
  options.workers[1].job = "ps";
  options.workers[1].task = 0;
  options.workers[1].device_count = 0;
  EXPECT_THAT(
      ([&] {
        open_engine(GetParam().engine, std::move(options))->run([](Worker& worker) {
          if (worker.job() == "ps") return;
          ParameterServerStrategyV2 strategy(worker);
          ClusterCoordinator::coordinate(strategy, [](ClusterCoordinator& c) { c.schedule("train"); });
        });
      }),
      testing::Throws<std::exception>(testing::Property(&std::exception::what, HasSubstr("give the cluster a chief"))));
}

// A server of every task, as in TensorFlow's programs: its cluster must be that of the run.
TEST_P(FunctionsByName, AServerServesThemInTheProgramOfItsTask) {
  EngineOptions options = world_options(GetParam(), 3, 1);
  options.workers[0].job = "chief";
  options.workers[2].job = "ps";
  options.workers[1].task = options.workers[2].task = 0;
  options.workers[2].device_count = 0;
  WorkerFunctions functions;
  functions.add("same", [](ParameterServerStrategyV2&, const Value::Parts& arguments) { return arguments[0]; });
  const ClusterSpec cluster{{"chief", {"localhost:0"}}, {"worker", {"localhost:0"}}, {"ps", {"localhost:0"}}};
  const ClusterSpec larger{{"chief", {"localhost:0"}}, {"worker", {"localhost:0", "localhost:0"}}};
  open_engine(GetParam().engine, std::move(options))->run([&](Worker& worker) {
    if (worker.job() == "chief") {
      ParameterServerStrategyV2 strategy(worker);
      ClusterCoordinator::coordinate(strategy, [](ClusterCoordinator& coordinator) {
        EXPECT_EQ(coordinator.schedule("same", {7}).fetch().number(), 7);
      });
      return;
    }
    EXPECT_THAT([&] { Server(cluster, "chief", 0).join(worker, functions); },
                ThrowsMessage<InvalidArgumentError>("the server of chief 0 in the program of " + worker.job() + " 0"));
    if (worker.job() == "worker") {
      EXPECT_THAT([&] { Server(larger, "worker", 0).join(worker, functions); },
                  ThrowsMessage<InvalidArgumentError>(AllOf(HasSubstr("has the tasks chief 0, worker 0, worker 1"),
                                                            HasSubstr("the run has chief 0, ps 0, worker 0"))));
    }
    EXPECT_THROW(Server({.cluster = cluster, .job_name = worker.job()}, false).join(worker, functions), RuntimeError);
    Server(cluster, worker.job(), 0).join(worker, functions);
  });
}

// A variable's memory is freed with its last handle, unless other processes may use it.
TEST_P(FunctionsByName, VariablesThatNobodyHoldsLeaveNoMemory) {
  WorkerFunctions functions;
  functions.add("read", [](ParameterServerStrategyV2&, const Value::Parts& arguments) -> Value {
    return arguments[0].variable()->read();
  });
  run(functions, [](ParameterServerStrategyV2& strategy, ClusterCoordinator& coordinator) {
    Worker& worker = strategy.extended().worker();
    if (!worker.capabilities().shared_objects) return;
    Device& server = *strategy.extended().parameter_devices()[0];
    const std::int64_t before = server.memory_in_use_bytes();
    for (int i = 0; i < 3; ++i) {
      const auto variable = strategy.create_variable({.name = "v", .shape = {1000}, .initial_value = {}});
      EXPECT_THAT(floats_of(worker, coordinator.schedule("read", {variable}).fetch().tensor()), Each(0.0F));
      coordinator.join();
    }
    server.synchronize();
    EXPECT_EQ(server.memory_in_use_bytes(), before);
  });
}

TEST_P(FunctionsByName, AWorkerThatServesNothingIsADeadlock) {
  EngineOptions options = world_options(GetParam(), 3, 1);
  options.workers[0].job = "chief";
  options.workers[2].job = "ps";
  options.workers[1].task = options.workers[2].task = 0;
  EXPECT_THAT(([&] {
                open_engine(GetParam().engine, std::move(options))->run([](Worker& worker) {
                  if (worker.job() != "chief") return;
                  ParameterServerStrategyV2 strategy(worker);
                  ClusterCoordinator::coordinate(
                      strategy, [](ClusterCoordinator& coordinator) { coordinator.schedule("train"); });
                });
              }),
              ThrowsMessage<DeadlockError>(HasSubstr("waits for worker 1 to run the function 'train'")));
}

TEST(WorkerFunctions, RefuseANameThatIsTaken) {
  WorkerFunctions functions;
  functions.add("f", nothing);
  EXPECT_THAT([&] { functions.add("f", nothing); }, ThrowsMessage<ValueError>(HasSubstr("a function 'f' already")));
  EXPECT_THROW(functions.add("g", nullptr), UsageError);
}

}  // namespace
}  // namespace tandem
