// Variables in every world: what has been read stays as it is, refused changes, constraints and apply_gradients().
#include <gmock/gmock.h>

#include <algorithm>

#include "strategies/base/errors.h"
#include "strategies/cross_device/host_values.h"
#include "strategies/strategy/context.h"
#include "strategies/types/central_storage.h"
#include "strategies/types/mirrored.h"
#include "strategies/types/one_device.h"
#include "strategies/variables/apply_gradients.h"
#include "tests/conformance/each_strategy.h"

namespace tandem {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

class Variables : public Strategies {};

using StrategyTest = std::function<void(Worker&, Strategy&)>;

void under_each_strategy(const World& world, const StrategyTest& test) {
  open_world(world, 1, 2)->run([&](Worker& worker) {
    under_each_strategy_of(worker, [&](Strategy& strategy) { test(worker, strategy); });
  });
}

std::shared_ptr<Variable> variable_of(Strategy& strategy, double initial, VariableConstraint constraint = {}) {
  return strategy.create_variable({.shape = {2},
                                   .initial_value = [initial](std::int64_t) { return initial; },
                                   .aggregation = VariableAggregation::mean,
                                   .constraint = std::move(constraint)});
}

IndexedSlices row(Device& device, double index, double value) {
  return {constant(device, {value}), constant(device, {index}, Shape{1}, DType::i64), {2}};
}

TEST_P(Variables, KeepWhatWasReadFromLaterChanges) {
  under_each_strategy(GetParam(), [](Worker& worker, Strategy& strategy) {
    const auto variable = variable_of(strategy, 1);
    const Tensor first = variable->value();
    variable->assign(Value(5.0));
    const Tensor second = variable->read();
    const Tensor added = variable->assign_add(Value(2.0));
    variable->scatter_update(row(worker.cpu(), 1, 9));
    const Value result = strategy.run([&](const Value::Parts&) -> Value { return variable->value(); });
    variable->assign(Value(0.0));
    EXPECT_THAT(floats_of(worker, first), ElementsAre(1, 1));
    EXPECT_THAT(floats_of(worker, second), ElementsAre(5, 5));
    EXPECT_THAT(floats_of(worker, added), ElementsAre(7, 7));
    for (const Value& local : strategy.experimental_local_results(result)) {
      EXPECT_THAT(floats_of(worker, local.tensor()), ElementsAre(7, 9));
    }
    EXPECT_THAT(floats_of(worker, variable->value()), Each(0));
  });
}

TEST_P(Variables, KeepWhatWasReadFromReplicasAndUpdates) {
  under_each_strategy(GetParam(), [](Worker& worker, Strategy& strategy) {
    const auto variable = variable_of(strategy, 1);
    strategy.run([&](const Value::Parts&) {
      const Tensor before = variable->value();
      variable->assign_add(Value(2.0));
      EXPECT_THAT(floats_of(worker, before), Each(1));
      EXPECT_THAT(floats_of(worker, variable->value()), Each(3));
      return Value();
    });
    const Tensor before = variable->value();
    strategy.extended().update(variable, [&](Variable& component, const Value::Parts&) {
      const Tensor read = component.value();
      const Tensor& memory = component.handle();
      memory.device().compute_stream().launch(op::fill(memory, 8));
      EXPECT_THAT(floats_of(worker, read), Each(3));
      return Value();
    });
    EXPECT_THAT(floats_of(worker, before), Each(3));
    EXPECT_THAT(floats_of(worker, variable->value()), Each(8));
  });
}

TEST_P(Variables, KeepWhatOtherStreamsHaveYetToRead) {
  run(2, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    const auto variable = variable_of(strategy, 1);
    worker.devices()[0]->synchronize();
    Device& device = *worker.devices()[0];
    Stream& other = device.stream(7);
    const Tensor copy = device.allocate(DType::f32, {2});
    other.wait(worker.devices()[1]->compute_stream().record());
    other.launch(op::scale_add(copy, variable->value(), 1, 0));
    for (int i = 0; i < 50; ++i) variable->assign_add(Value(1.0));
    device.synchronize();
    EXPECT_THAT(floats_of(worker, copy), Each(1));
    EXPECT_THAT(floats_of(worker, variable->value()), Each(51));
  });
}

TEST_P(Variables, OfSyncOnReadKeepWhatWasRead) {
  run(2, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    const auto variable = strategy.create_variable({.shape = {1},
                                                    .synchronization = VariableSynchronization::on_read,
                                                    .aggregation = VariableAggregation::only_first_replica});
    const Tensor before = variable->read();
    strategy.run([&](const Value::Parts&) {
      const Tensor own = variable->value();
      variable->assign_add(Value(1.0 + replica_id()));
      EXPECT_THAT(floats_of(worker, own), Each(0));
      return Value();
    });
    EXPECT_THAT(floats_of(worker, before), Each(0));
    EXPECT_THAT(floats_of(worker, variable->read()), Each(1));
  });
}

// Copies that the updates of a mirrored variable made, in a loop that reads it before each of them.
int copies_of_updates(const World& world, bool holds_what_it_read, Change change) {
  const Timeline timeline = open_world(world, 1, 2)->run([&](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    const auto variable = variable_of(strategy, 1);
    std::vector<Tensor> held;
    for (int step = 0; step < 3; ++step) {
      strategy.run([&](const Value::Parts&) {
        Device& device = get_replica_context()->device();
        const Tensor value = variable->value();
        if (holds_what_it_read) held.push_back(value);
        device.compute_stream().launch(op::relu(device.allocate(DType::f32, {2}), value));
        return Value();
      });
      change == Change::assign ? variable->assign(Value(2.0)) : variable->assign_add(Value(2.0));
    }
  });
  return static_cast<int>(std::count_if(timeline.records.begin(), timeline.records.end(), [](const Record& record) {
    return record.kind == RecordKind::copy && record.category == Category::update;
  }));
}

TEST_P(Variables, AreCopiedOnlyWhereSomebodyHoldsWhatAnUpdateNeeds) {
  EXPECT_EQ(copies_of_updates(GetParam(), false, Change::add), 0);
  EXPECT_EQ(copies_of_updates(GetParam(), true, Change::assign), 0) << "nothing of the old value is needed";
  EXPECT_EQ(copies_of_updates(GetParam(), true, Change::add), 3 * 2) << "each step, on each device";
}

TEST_P(Variables, RefuseOtherElementTypes) {
  under_each_strategy(GetParam(), [](Worker& worker, Strategy& strategy) {
    const auto variable = variable_of(strategy, 1);
    const Value whole = constant(worker.cpu(), {1, 2}, Shape{2}, DType::i32);
    EXPECT_THAT(message_of<ValueError>([&] { variable->assign(whole); }),
                HasSubstr("a value of type i32 for a variable of type f32"));
    EXPECT_THROW(variable->assign_add(whole), ValueError);
    EXPECT_THROW(variable->assign_sub(whole), ValueError);
    const auto count = strategy.create_variable({.dtype = DType::i64, .shape = {1}});
    EXPECT_THROW(count->assign(Value(0.5)), TypeError);
    EXPECT_THROW(count->assign_add(Value(0.5)), TypeError);
    count->assign_add(Value(2.0));
    EXPECT_EQ(host_number(worker, count->read()), 2);
    EXPECT_THAT(floats_of(worker, variable->read()), Each(1)) << "a refused change changes nothing";
  });
}

TEST_P(Variables, ScatteredOutOfRangeEndTheRunWithInvalidArgument) {
  for (const double index : {2.0, -1.0}) {
    EXPECT_THROW(run(2,
                     [&](Worker& worker) {
                       MirroredStrategy strategy(worker, devices_of(worker));
                       const auto variable = variable_of(strategy, 1);
                       variable->scatter_add(row(worker.cpu(), index, 1));
                       for (Device* device : worker.devices()) device->synchronize();
                     }),
                 InvalidArgumentError);
  }
}

TEST_P(Variables, TakeTheSumOfAllReplicasGradients) {
  under_each_strategy(GetParam(), [](Worker& worker, Strategy& strategy) {
    const int n = strategy.num_replicas_in_sync();
    const auto not_negative = [](const Tensor& value) {
      Tensor nearest = value.device().allocate(value.dtype(), value.shape());
      value.device().compute_stream().launch(op::relu(nearest, value));
      return nearest;
    };
    const auto free = variable_of(strategy, 1), bounded = variable_of(strategy, 1, not_negative);
    const auto untouched = variable_of(strategy, 4);
    EXPECT_TRUE(bounded->constraint());
    strategy.run([&](const Value::Parts&) {
      const Tensor gradient = constant(get_replica_context()->device(), {2, -2});
      apply_gradients({{gradient, free}, {Value(), untouched}, {gradient, bounded}},
                      [](Variable& variable, const Value& sum) { variable.assign_sub(sum); });
      return Value();
    });
    EXPECT_THAT(floats_of(worker, free->read()), ElementsAre(1 - 2 * n, 1 + 2 * n));
    EXPECT_THAT(floats_of(worker, bounded->read()), ElementsAre(0, 1 + 2 * n));
    EXPECT_THAT(floats_of(worker, untouched->read()), Each(4));
    const ValueRule none = [](Variable&, const Value&) {};
    EXPECT_THROW(strategy.run([&](const Value::Parts&) {
      apply_gradients({{Value(), free}}, none);
      return Value();
    }),
                 ValueError);
    const Scope scope = strategy.scope();
    EXPECT_THROW(apply_gradients({{Value(1.0), free}}, none), RuntimeError);
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, Variables, testing::ValuesIn(built_worlds()), name_of_world);

}  // namespace
}  // namespace tandem
