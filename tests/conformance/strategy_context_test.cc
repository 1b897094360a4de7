// Which strategy and which replica are current, which devices and names a strategy takes, in every world.
#include <gmock/gmock.h>

#include "strategies/base/errors.h"
#include "strategies/strategies.h"
#include "strategies/strategy/context.h"
#include "strategies/strategy/replica_context.h"
#include "strategies/types/mirrored.h"
#include "strategies/types/one_device.h"
#include "tests/conformance/strategy_testing.h"

namespace tandem {
namespace {

using testing::HasSubstr;

TEST_P(Strategies, ContextsAreAsInTensorFlow) {
  run(2, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    EXPECT_FALSE(has_strategy());
    EXPECT_NE(get_replica_context(), nullptr);
    EXPECT_FALSE(in_cross_replica_context());
    {
      const Scope scope = strategy.scope();
      EXPECT_EQ(&get_strategy(), &strategy);
      EXPECT_TRUE(has_strategy());
      EXPECT_EQ(get_replica_context(), nullptr);
      EXPECT_EQ(get_cross_replica_context(), &strategy);
      const Scope again = strategy.scope();
      EXPECT_TRUE(in_cross_replica_context());
    }
    strategy.run([&](const Value::Parts&) {
      EXPECT_EQ(&get_replica_context()->strategy(), &strategy);
      EXPECT_EQ(get_cross_replica_context(), nullptr);
      EXPECT_THROW(strategy.reduce(ReduceOp::sum, Value::literal(1)), RuntimeError);
      EXPECT_THROW({ const Scope scope = strategy.scope(); }, RuntimeError);
      return Value();
    });
    EXPECT_FALSE(has_strategy());
    const Value joined = get_replica_context()->merge_call(
        [](Strategy&, const Value::Parts& arguments) { return Value(arguments[0].text() + arguments[1].text()); },
        {Value(std::string("foo_")), Value(std::string("bar"))});
    EXPECT_EQ(joined.text(), "foo_bar");
  });
}

TEST_P(Strategies, MixingStrategiesIsRefused) {
  run(2, [](Worker& worker) {
    MirroredStrategy one(worker, devices_of(worker));
    OneDeviceStrategy other(worker, *worker.devices()[0]);
    const Scope scope = one.scope();
    EXPECT_THAT(message_of<RuntimeError>([&] { const Scope inner = other.scope(); }), HasSubstr("mixing different"));
    EXPECT_THAT(message_of<RuntimeError>([&] { other.run([](const Value::Parts&) { return Value(); }); }),
                HasSubstr("mixing different"));
    EXPECT_THROW(experimental_set_strategy(&other), RuntimeError);
  });
}

TEST_P(Strategies, OneDeviceCallsDirectly) {
  run(1, [](Worker& worker) {
    OneDeviceStrategy strategy(worker, *worker.devices()[0]);
    const Value result = strategy.run([](const Value::Parts& arguments) { return arguments.front(); }, {Value(3.0)});
    EXPECT_EQ(result.number(), 3);
    EXPECT_EQ(strategy.reduce(ReduceOp::sum, result).number(), 3);
    EXPECT_EQ(strategy.num_replicas_in_sync(), 1);
  });
}

TEST_P(Strategies, WrongNamesSuggestTheRightOnes) {
  run(1, [](Worker& worker) {
    EXPECT_THAT(message_of<ValueError>([&] { make_strategy("mirored", worker); }),
                HasSubstr("did you mean 'mirrored'"));
    EXPECT_THAT(message_of<ValueError>([&] { MirroredStrategy(worker, devices_of(worker), "ncl"); }),
                HasSubstr("did you mean 'nccl'"));
    EXPECT_THROW(MirroredStrategy(worker, {}), ValueError);
    EXPECT_THROW(MirroredStrategy(worker, devices_of(worker), "nccl", Packing{.num_packs = -1}), ValueError);
  });
}

}  // namespace
}  // namespace tandem
