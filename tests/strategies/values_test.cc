// Values in every world: operators, constants, text forms, and what run() and local results give for them.
#include <gmock/gmock.h>

#include <sstream>

#include "strategies/base/errors.h"
#include "strategies/cross_device/host_values.h"
#include "strategies/strategy/arithmetic.h"
#include "strategies/strategy/average_loss.h"
#include "strategies/strategy/context.h"
#include "strategies/types/mirrored.h"
#include "strategies/types/one_device.h"
#include "tests/conformance/strategy_testing.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Operators, InvertWholeNumbers) {
  EXPECT_EQ((~Value(7.0)).number(), -8);
  EXPECT_EQ((~Value::mirrored({7.0, 8.0})).number(), -8);
  EXPECT_THROW(~Value(0.5), TypeError);
}

TEST(Operators, RaiseToAPowerModuloAThirdNumber) {
  EXPECT_EQ(power(7.0, 2.0).number(), 49);
  EXPECT_EQ(power(7.0, 2.0, 5.0).number(), 4);
  EXPECT_EQ(power(-7.0, 1.0, 5.0).number(), 3);
  EXPECT_EQ(power(7.0, 2.0, -5.0).number(), -1);
  EXPECT_EQ(power(2.0, 62.0, 1000000007.0).number(), 145586002);
  EXPECT_EQ(power(123456789.0, 5.0, 2147483647.0).number(), 1949744752);
  EXPECT_THROW(power(7.0, -1.0, 5.0), ValueError);
  EXPECT_THROW(power(7.0, 1.0, 0.0), ValueError);
  EXPECT_THROW(power(7.0, 0.5, 5.0), TypeError);
}

TEST(Values, HaveATextForm) {
  const Value nest = Value::tuple({Value(std::string("a")), Value::list({1.0, Value()}),
                                   Value::map({{"x", Value::per_replica({2.0, 3.5})}}, "Point")});
  EXPECT_EQ(text_of(nest), R"(("a", [1, None], Point{x: PerReplica[2, 3.5]}))");
  std::ostringstream out;
  out << Value::mirrored({1.0, 1.0}) << ' ' << Tensor();
  EXPECT_EQ(out.str(), "Mirrored[1, 1] Tensor()");
}

TEST_P(Strategies, TensorsSlicesAndVariablesHaveATextForm) {
  run(2, [](Worker& worker) {
    Device& device = *worker.devices()[1];
    const Tensor rows = filled(device, {1, 3}, 2);
    const std::string where = device.id().text();
    EXPECT_EQ(rows.text(), "Tensor(f32 [1, 3] on " + where + ")");
    const IndexedSlices slices{rows, constant(device, {4}, Shape{1}, DType::i64), {8, 3}};
    EXPECT_EQ(text_of(slices), "IndexedSlices(" + rows.text() + ", indices [1], dense [8, 3])");
    MirroredStrategy strategy(worker, devices_of(worker));
    const auto variable = strategy.create_variable({.name = "w", .shape = {3}});
    EXPECT_EQ(variable->text(), "Variable 'w' (mirrored, f32 [3], 2 components)");
    EXPECT_EQ(text_of(variable), variable->text());
  });
}

TEST_P(Strategies, IndexedSlicesAreFoundInNests) {
  run(1, [](Worker& worker) {
    const Tensor tensor = filled(worker.cpu(), {1}, 1);
    const IndexedSlices slices{tensor, constant(worker.cpu(), {0}, Shape{1}, DType::i64), {2}};
    EXPECT_TRUE(Value(slices).contains_indexed_slices());
    EXPECT_TRUE(Value::list({tensor, Value::tuple({1.0, slices})}).contains_indexed_slices());
    EXPECT_TRUE(Value::map({{"a", Value::per_replica({slices, slices})}}).contains_indexed_slices());
    EXPECT_FALSE(Value::list({tensor, 1.0, Value()}).contains_indexed_slices());
  });
}

TEST_P(Strategies, ConstantsAreMadeOnTheDevice) {
  run(2, [](Worker& worker) {
    Device& device = *worker.devices()[1];
    const Tensor matrix = constant(device, {1, 2, 3, 4}, Shape{2, 2});
    EXPECT_EQ(&matrix.device(), &device);
    EXPECT_THAT(floats_of(worker, matrix), ElementsAre(1, 2, 3, 4));
    EXPECT_EQ(constant(device, {5}).shape(), Shape{1});
    EXPECT_EQ(constant(device, {5}, Shape{}).shape(), Shape{});
    EXPECT_EQ(host_number(worker, constant(device, {7}, Shape{}, DType::i32)), 7);
    EXPECT_THROW(constant(device, {1, 2}, Shape{3}), ValueError);
  });
}

TEST_P(Strategies, OperatorsInsideRunComputeOnTheReplicasDevice) {
  run(2, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    const Value captured = constant(worker.cpu(), {1, 2});
    const Value results = strategy.run([&](const Value::Parts&) {
      Value sum = captured + captured * static_cast<double>(replica_id() + 1);
      EXPECT_EQ(&sum.tensor().device(), &get_replica_context()->device());
      return sum;
    });
    EXPECT_THAT(floats_of(worker, results.parts()[0].tensor()), ElementsAre(2, 4));
    EXPECT_THAT(floats_of(worker, results.parts()[1].tensor()), ElementsAre(3, 6));
    EXPECT_EQ(&(captured + 1.0).tensor().device(), &worker.cpu()) << "outside of run()";
  });
}

TEST_P(Strategies, LocalResultsOfAVariableAreItsComponents) {
  run(2, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    const auto variable = strategy.create_variable({.shape = {1}, .initial_value = [](std::int64_t) { return 3; }});
    const Value::Parts results = strategy.experimental_local_results(variable);
    ASSERT_EQ(results.size(), 2U);
    for (std::size_t i = 0; i < 2; ++i) EXPECT_TRUE(results[i].tensor().is_same(variable->components()[i]));
    const Value nested = Value::tuple({variable, 1.0});
    EXPECT_TRUE(strategy.experimental_local_results(nested)[1].parts()[0].tensor().is_same(variable->components()[1]));
  });
}

// Two replicas of 2 and 3 examples: the sum of their shares is the mean over all five.
TEST_P(Strategies, AverageLossesAddUpToTheMeanOverTheBatch) {
  run(2, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    const Value losses = strategy.run([&](const Value::Parts&) -> Value {
      Device& device = get_replica_context()->device();
      const Tensor mine = replica_id() == 0 ? constant(device, {2, 4}) : constant(device, {1, 5, 8});
      return compute_average_loss(mine, std::nullopt, 5);
    });
    EXPECT_THAT(floats_of(worker, strategy.reduce(ReduceOp::sum, losses).tensor()), ElementsAre(4));
    strategy.run([&](const Value::Parts&) {
      Device& device = get_replica_context()->device();
      const Tensor four = constant(device, {2, 4, 6, 8}), two_by_two = constant(device, {2, 4, 6, 8}, Shape{2, 2});
      EXPECT_THAT(floats_of(worker, compute_average_loss(four)), ElementsAre(2.5)) << "20 / (4 examples * 2 replicas)";
      EXPECT_THAT(floats_of(worker, compute_average_loss(two_by_two)), ElementsAre(5)) << "axis 0 counts";
      EXPECT_THAT(floats_of(worker, compute_average_loss(four, Value(0.5))), ElementsAre(1.25));
      EXPECT_THAT(floats_of(worker, compute_average_loss(four, Value(constant(device, {0, 1, 0, 2})))),
                  ElementsAre(2.5));
      EXPECT_EQ(compute_average_loss(four).shape(), Shape{});
      EXPECT_THROW(compute_average_loss(constant(device, {1}, Shape{})), ValueError);
      EXPECT_THROW(compute_average_loss(four, std::nullopt, 0), ValueError);
      return Value();
    });
    const Scope scope = strategy.scope();
    EXPECT_THROW(compute_average_loss(constant(worker.cpu(), {1, 2})), RuntimeError);
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, Strategies, testing::ValuesIn(built_worlds()), name_of_world);

}  // namespace
}  // namespace tandem
