// Variables of Mirrored in every world. The numbers are those of TensorFlow's own tests.
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

struct AssignCase {
  VariableAggregation aggregation;
  double initial;
  std::function<void(Variable&)> change;  // made in every replica
  std::vector<float> components;
};

// TensorFlow's values for two replicas, semantics of 2.4 and later.
TEST_P(Strategies, MirroredVariablesAggregateAssignments) {
  using enum VariableAggregation;
  const auto id = [] { return static_cast<double>(replica_id()); };
  const std::vector<AssignCase> cases = {
      {mean, 1, [id](Variable& v) { v.assign(id()); }, {0.5, 0.5}},
      {mean, 1, [id](Variable& v) { v.assign_add(id()); }, {1.5, 1.5}},
      {mean, 5, [id](Variable& v) { v.assign_sub(id()); }, {4.5, 4.5}},
      {mean, 1, [](Variable& v) { v.assign_add(Value::literal(5)); }, {6, 6}},
      {sum, 1, [](Variable& v) { v.assign(Value(2.0)); }, {4, 4}},
      {only_first_replica, 3, [id](Variable& v) { v.assign_add(7 * (id() + 1)); }, {10, 10}},
      {none, 1, [id](Variable& v) { v.assign_add(id()); }, {1, 2}},
  };
  for (const AssignCase& assign : cases) {
    run(2, [&](Worker& worker) {
      MirroredStrategy strategy(worker, devices_of(worker));
      const auto variable = strategy.create_variable({.shape = {1},
                                                      .initial_value = [&](std::int64_t) { return assign.initial; },
                                                      .aggregation = assign.aggregation});
      strategy.run([&](const Value::Parts&) {
        assign.change(*variable);
        return Value();
      });
      for (std::size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(floats_of(worker, variable->components()[i])[0], assign.components[i]);
      }
    });
  }
}

TEST_P(Strategies, ReplicasUpdateTheirOwnComponentsByThemselves) {
  run(3, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    const auto variable = strategy.create_variable({.shape = {2}, .initial_value = [](std::int64_t) { return 10; }});
    const UpdateFunction add = [](Variable& component, const Value::Parts& arguments) {
      component.assign_add(arguments.front());
      return Value();
    };
    strategy.run([&](const Value::Parts&) {
      StrategyExtended& extended = get_strategy().extended();
      Value::Parts parts;
      for (Device* device : extended.worker_devices()) parts.emplace_back(filled(*device, {2}, 5));
      extended.replica_update(variable, add, {Value::mirrored(parts)});
      extended.replica_update(variable, add, {Value(filled(get_replica_context()->device(), {2}, replica_id()))});
      return Value();
    });
    for (int i = 0; i < 3; ++i) {
      const auto component = static_cast<std::size_t>(i);
      EXPECT_THAT(floats_of(worker, variable->components()[component]), ElementsAre(15 + i, 15 + i));
    }
    EXPECT_THAT(message_of<RuntimeError>([&] { strategy.extended().replica_update(variable, add, {Value(1.0)}); }),
                HasSubstr("replica_update() is called in a replica context"));
  });
}

TEST_P(Strategies, SumOfASharedLiteralIsRefused) {
  run(2, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    const auto variable = strategy.create_variable({.shape = {1}, .aggregation = VariableAggregation::sum});
    EXPECT_THROW(strategy.run([&](const Value::Parts&) {
      variable->assign(Value::literal(5));
      return Value();
    }),
                 ValueError);
  });
}

TEST_P(Strategies, SyncOnReadVariablesAggregateWhenRead) {
  run(2, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    const auto variable = strategy.create_variable({.shape = {1},
                                                    .initial_value = [](std::int64_t) { return 1.0; },
                                                    .synchronization = VariableSynchronization::on_read,
                                                    .aggregation = VariableAggregation::sum});
    strategy.run([&](const Value::Parts&) {
      variable->assign_add(2.0 + replica_id());
      return Value();
    });
    EXPECT_EQ(floats_of(worker, variable->components()[0])[0], 3);
    EXPECT_EQ(floats_of(worker, variable->components()[1])[0], 4);
    EXPECT_EQ(floats_of(worker, variable->read())[0], 7);
    variable->assign(Value::literal(6));
    EXPECT_EQ(floats_of(worker, variable->components()[1])[0], 3);
    EXPECT_THROW(variable->assign_add(Value::literal(1)), ValueError);
  });
}

}  // namespace
}  // namespace tandem
