// What run() and merge_call() of Mirrored do in every world: order, regrouping, and errors of replicas.
#include <gmock/gmock.h>

#include "strategies/base/context.h"
#include "strategies/base/errors.h"
#include "strategies/base/replica_context.h"
#include "strategies/mirrored.h"
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

INSTANTIATE_TEST_SUITE_P(Worlds, Strategies, testing::ValuesIn(built_worlds()), name_of_world);

}  // namespace
}  // namespace tandem
