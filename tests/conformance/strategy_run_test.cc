// What run() and merge_call() of Mirrored do in every world: order, regrouping, and errors of replicas.
#include <gmock/gmock.h>

#include "strategies/base/errors.h"
#include "strategies/strategy/context.h"
#include "strategies/strategy/replica_context.h"
#include "strategies/types/mirrored.h"
#include "tests/conformance/strategy_testing.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST_P(Strategies, RunRegroupsByIdentity) {
  run(3, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    const Value shared = Value::literal(5);
    const Value result = strategy.run([&](const Value::Parts&) {
      return Value::tuple({Value(5.0 * replica_id()), shared, Value::literal(7)});
    });
    ASSERT_TRUE(result.is(ValueKind::tuple));
    EXPECT_TRUE(result.parts()[0].is(ValueKind::per_replica));
    EXPECT_EQ(result.parts()[0].parts()[2].number(), 10);
    EXPECT_EQ(result.parts()[1].number(), 5);
    EXPECT_EQ(result.parts()[2].number(), 7);
    EXPECT_EQ(strategy.experimental_local_results(result).size(), 3u);
  });
}

TEST_P(Strategies, ReplicasAdvanceInOrderUpToTheNextMergeCall) {
  run(3, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    std::vector<std::string> order;
    strategy.run([&](const Value::Parts&) {
      order.push_back("a" + std::to_string(replica_id()));
      get_replica_context()->merge_call([&](Strategy& merging, const Value::Parts&) {
        EXPECT_TRUE(in_cross_replica_context());
        EXPECT_EQ(&merging, &strategy);
        order.push_back("merge");
        return Value();
      });
      order.push_back("b" + std::to_string(replica_id()));
      return Value();
    });
    EXPECT_THAT(order, ElementsAre("a0", "a1", "a2", "merge", "b0", "b1", "b2"));
  });
}

TEST_P(Strategies, MergeCallRegroupsArgumentsAndSplitsTheResult) {
  run(2, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    const Value result = strategy.run([&](const Value::Parts&) {
      const Value part = get_replica_context()->merge_call(
          [](Strategy&, const Value::Parts& arguments) {
            EXPECT_TRUE(arguments[0].is(ValueKind::per_replica));
            EXPECT_TRUE(arguments[1].is(ValueKind::number));
            return Value::per_replica(
                {Value(arguments[0].parts()[1].number()), Value(arguments[0].parts()[0].number())});
          },
          {Value(10.0 + replica_id()), Value::literal(1)});
      return Value(part.number());
    });
    EXPECT_EQ(result.parts()[0].number(), 11);  // swapped
    EXPECT_EQ(result.parts()[1].number(), 10);
  });
}

TEST_P(Strategies, RunInsideAMergeFunction) {
  run(2, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    const Value result = strategy.run([&](const Value::Parts&) {
      return get_replica_context()->merge_call([](Strategy& merging, const Value::Parts&) {
        return merging.run([](const Value::Parts&) { return Value(1.0 + replica_id()); });
      });
    });
    EXPECT_EQ(result.parts()[1].number(), 2);
  });
}

TEST_P(Strategies, AReplicaThatSkipsAMergeCallIsAnErrorThatNamesWhoWaits) {
  for (const int skipping : {0, 1, 2}) {
    run(3, [&](Worker& worker) {
      MirroredStrategy strategy(worker, devices_of(worker));
      const std::string message = message_of<RuntimeError>([&] {
        strategy.run([&](const Value::Parts&) {
          if (replica_id() != skipping) {
            get_replica_context()->merge_call([](Strategy&, const Value::Parts&) { return Value(); });
          }
          return Value();
        });
      });
      EXPECT_THAT(message, HasSubstr("different number of merge_call"));
      EXPECT_THAT(message, HasSubstr("replica " + std::to_string(skipping) + " (0 made) finished"));
      EXPECT_THAT(message, HasSubstr("replica " + std::to_string((skipping + 1) % 3) + " (call 1)"));
      EXPECT_EQ(strategy.run([](const Value::Parts&) { return Value::literal(1); }).number(), 1);  // still usable
    });
  }
}

TEST_P(Strategies, TheExceptionOfAReplicaReachesTheCaller) {
  struct Own : std::runtime_error {
    using std::runtime_error::runtime_error;
  };
  run(3, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    const auto merge = [](const MergeFunction& function) { return get_replica_context()->merge_call(function); };
    const std::vector<ReplicaFunction> failing = {
        [](const Value::Parts&) -> Value {
          if (replica_id() == 1) throw Own("in a replica");
          return {};
        },
        [&](const Value::Parts&) {
          return merge([](Strategy&, const Value::Parts&) -> Value { throw Own("in a merge"); });
        },
        [&](const Value::Parts&) {
          return merge([](Strategy& s, const Value::Parts&) {
            return s.run([](const Value::Parts&) -> Value { throw Own("in a nested run"); });
          });
        },
        [&](const Value::Parts&) {
          return merge([&](Strategy& s, const Value::Parts&) {
            return s.run([&](const Value::Parts&) {
              return merge([](Strategy&, const Value::Parts&) -> Value { throw Own("in a nested merge"); });
            });
          });
        }};
    for (const ReplicaFunction& function : failing) EXPECT_THROW(strategy.run(function), Own);
  });
}

TEST_P(Strategies, AnArgumentWithTooFewPartsIsRefusedBeforeAnyReplicaRuns) {
  run(3, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    const Value two = Value::per_replica({Value(1.0), Value(2.0)});
    int runs = 0;
    const auto count = [&](const Value::Parts&) {
      ++runs;
      return Value();
    };
    EXPECT_THAT(
        message_of<ValueError>([&] {
          strategy.run(count, {Value::literal(1), Value::list({two})});
        }),
        HasSubstr("run() needs a part for each of 3 replicas, and argument 1 is a per-replica value of 2 parts"));
    EXPECT_EQ(runs, 0);
    const auto variable = strategy.create_variable({.name = "v", .shape = {}});
    const auto assign = [](Variable& component, const Value::Parts& arguments) -> Value {
      return component.assign(arguments.front());
    };
    StrategyExtended& extended = strategy.extended();
    EXPECT_THAT(message_of<ValueError>([&] { extended.update(variable, assign, {two}); }),
                HasSubstr("update() needs a part for each of 3 components"));
    EXPECT_THAT(message_of<ValueError>([&] { extended.update_non_slot(extended.worker_devices(), count, {two}); }),
                HasSubstr("update_non_slot() needs a part for each of 3 devices"));
    EXPECT_EQ(strategy.run(count, {}).kind(), ValueKind::none);  // still usable
    EXPECT_EQ(runs, 3);
  });
}

TEST_P(Strategies, CallsWithoutAFunctionAreAMistakeOfTheCaller) {
  run(2, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    StrategyExtended& extended = strategy.extended();
    const auto variable = strategy.create_variable({.name = "v", .shape = {}});
    EXPECT_THROW(strategy.run({}), UsageError);
    EXPECT_THROW(extended.call_for_each_replica({}), UsageError);
    EXPECT_THROW(extended.update(variable, {}), UsageError);
    EXPECT_THROW(extended.update_non_slot(extended.worker_devices(), {}), UsageError);
    const auto merge = [](const Value::Parts&) { return get_replica_context()->merge_call({}); };
    EXPECT_THROW(strategy.run(merge), UsageError);
    EXPECT_THROW(Strategy("mine", nullptr), UsageError);
  });
}

// At each leaf the local results of what is regrouped: one object counts once, components of a variable each.
TEST_P(Strategies, UngroupedUpdatesHaveATupleOfLocalResultsAtEachLeaf) {
  run(3, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    StrategyExtended& extended = strategy.extended();
    const auto variable = strategy.create_variable({.name = "v", .shape = {}});
    const auto other = strategy.create_variable({.name = "w", .shape = {}});
    int calls = 0;
    const Value results = extended.update(
        variable,
        [&](Variable& component, const Value::Parts&) {
          ++calls;
          return Value::tuple({Value(1.0 * calls), Value::literal(7), Value(component.handle()), Value(other)});
        },
        {}, false);
    EXPECT_EQ(calls, 3);
    const auto sizes = [](const Value& nest) {
      std::vector<std::size_t> all;
      for (const Value& leaf : nest.parts()) all.push_back(leaf.parts().size());
      return all;
    };
    EXPECT_THAT(sizes(results), ElementsAre(3, 1, 3, 3));
    EXPECT_EQ(results.parts()[0].parts()[2].number(), 3);
    EXPECT_EQ(results.parts()[1].parts()[0].number(), 7);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_TRUE(results.parts()[2].parts()[i].tensor().is_same(variable->components()[i]));
      EXPECT_TRUE(results.parts()[3].parts()[i].tensor().is_same(other->components()[i]));
    }
    const Value non_slot = extended.update_non_slot(
        extended.worker_devices(), [](const Value::Parts&) { return Value::literal(5); }, {}, false);
    EXPECT_EQ(non_slot.parts().size(), 1u);
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, Strategies, testing::ValuesIn(built_worlds()), name_of_world);

}  // namespace
}  // namespace tandem
