// Reductions of Mirrored and how it divides a batch, in every world. Values are whole numbers, so that every sum is
// exact.
#include <gmock/gmock.h>

#include "strategies/base/errors.h"
#include "strategies/input/dataset.h"
#include "strategies/input/distributed_dataset.h"
#include "strategies/strategy/replica_context.h"
#include "strategies/types/mirrored.h"
#include "tests/conformance/strategy_testing.h"

namespace tandem {
namespace {

using testing::ElementsAre;

TEST_P(Strategies, ReduceOfSharedAndPerReplicaNumbers) {
  run(4, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    const Value ids = strategy.run([](const Value::Parts&) { return Value(1.0 + replica_id()); });
    EXPECT_EQ(strategy.reduce(ReduceOp::sum, ids).number(), 10);
    EXPECT_EQ(strategy.reduce(ReduceOp::mean, ids).number(), 2.5);
    EXPECT_EQ(strategy.reduce(ReduceOp::mean, Value::literal(3)).number(), 3);
    EXPECT_EQ(strategy.reduce(ReduceOp::sum, Value::literal(0)).number(), 0);
    EXPECT_THROW(strategy.reduce(ReduceOp::sum, Value::literal(3)), ValueError);
    EXPECT_THROW(strategy.reduce(ReduceOp::sum, Value::mirrored({Value(1.0), Value(1.0)})), AssertionError);
  });
}

// Replica 0 holds one 0, replica 1 two 1s: every element has weight one, so the mean is 2/3.
TEST_P(Strategies, MeanOverAnAxisWeighsElements) {
  run(2, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    const Value values = strategy.run([](const Value::Parts&) {
      return Value(filled(get_replica_context()->device(), {1 + replica_id()}, replica_id()));
    });
    const Tensor mean = strategy.reduce(ReduceOp::mean, values, 0).tensor();
    EXPECT_FLOAT_EQ(floats_of(worker, mean)[0], 2.0F / 3);
    const Tensor sum = strategy.reduce(ReduceOp::sum, values, -1).tensor();
    EXPECT_EQ(floats_of(worker, sum)[0], 2);
    EXPECT_THROW(strategy.reduce(ReduceOp::sum, values, 1), ValueError);
  });
}

TEST_P(Strategies, AllReduceLeavesItsArgumentsAndKeepsTheStructure) {
  run(2, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    const Value result = strategy.run([](const Value::Parts&) {
      ReplicaContext& context = *get_replica_context();
      const Tensor mine = filled(context.device(), {3}, 1 + replica_id());
      const Value sums = context.all_reduce(ReduceOp::sum, Value::list({Value(mine), Value(2.0 * replica_id())}));
      return Value::tuple({sums, Value(mine)});
    });
    const Value& first = result.parts()[0].parts()[0];
    EXPECT_THAT(floats_of(worker, first.parts()[1].tensor()), testing::Each(3.0F));
    EXPECT_EQ(result.parts()[0].parts()[1].parts()[0].number(), 2);
    EXPECT_THAT(floats_of(worker, result.parts()[1].parts()[0].tensor()), testing::Each(1.0F));
  });
}

TEST_P(Strategies, GlobalBatchesAreDividedAmongReplicas) {
  EXPECT_THAT(rebatch(4, 3), ElementsAre(2, 1, 1));
  EXPECT_THAT(rebatch(2, 4), ElementsAre(1, 1, 0, 0));
  run(3, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    HostArray rows{.row_shape = {1}, .values = std::vector<float>{0, 1, 2, 3, 4, 5}};
    auto iterator = strategy.experimental_distribute_dataset(Dataset::from_tensor_slices({rows}).batch(4)).iterator();
    std::vector<std::vector<float>> seen;
    while (const auto batch = iterator.next()) {
      const Value& parts = batch->parts()[0];
      for (const Value& part : parts.parts()) seen.push_back(floats_of(worker, part.tensor()));
    }
    // Sharded by data, as AUTO does without files: pieces of ceil(b / n) rows, and empty ones for the rest.
    EXPECT_THAT(seen, ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(), ElementsAre(4), ElementsAre(5),
                                  ElementsAre()));
  });
}

}  // namespace
}  // namespace tandem
