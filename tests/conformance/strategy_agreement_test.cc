// Replicas that meet in different calls, or with gradients of different variables, in every world: they are refused,
// and no component of a variable differs from another one. Values are whole numbers, so that every sum is exact.
#include <gmock/gmock.h>

#include <limits>

#include "strategies/base/errors.h"
#include "strategies/cross_device/host_values.h"
#include "strategies/strategy/replica_context.h"
#include "strategies/types/mirrored.h"
#include "strategies/variables/apply_gradients.h"
#include "tests/conformance/strategy_testing.h"

namespace tandem {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;

Value gradient(double value) {
  return filled(get_replica_context()->device(), {1}, value);
}

void subtract(Variable& variable, const Value& sum) {
  variable.assign_sub(sum);
}

// The value of each component.
std::vector<double> components_of(Worker& worker, const std::shared_ptr<Variable>& variable) {
  std::vector<double> values;
  for (const Tensor& component : variable->components()) values.push_back(host_values(worker, component).at(0));
  return values;
}

std::shared_ptr<Variable> variable_of(Strategy& strategy, const std::string& name) {
  return strategy.create_variable({.name = name, .shape = {1}, .aggregation = VariableAggregation::sum});
}

TEST_P(Strategies, GradientsMeetByTheirVariables) {
  run(2, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    const auto a = variable_of(strategy, "a"), b = variable_of(strategy, "b");
    strategy.run([&](const Value::Parts&) {
      if (replica_id() == 0) {
        apply_gradients({{gradient(1), a}, {gradient(2), b}}, subtract);
      } else {
        apply_gradients({{gradient(10), b}, {gradient(20), a}}, subtract);
      }
      return Value();
    });
    EXPECT_THAT(components_of(worker, a), Each(-21));
    EXPECT_THAT(components_of(worker, b), Each(-12));
  });
}

TEST_P(Strategies, GradientsOfOtherVariablesOnAnotherReplicaAreRefused) {
  run(2, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    const auto a = variable_of(strategy, "a"), b = variable_of(strategy, "b");
    const std::string message = message_of<RuntimeError>([&] {
      strategy.run([&](const Value::Parts&) {
        const bool is_first = replica_id() == 0;
        apply_gradients({{is_first ? gradient(1) : Value(), a}, {is_first ? Value() : gradient(10), b}}, subtract);
        return Value();
      });
    });
    EXPECT_EQ(message,
              "replicas meet in different calls: replica 0 in apply_gradients() of variable 'a', replica 1 in "
              "apply_gradients() of variable 'b'; all replicas make the same calls in the same order");
    EXPECT_THAT(components_of(worker, a), Each(0));
    EXPECT_THAT(components_of(worker, b), Each(0));
  });
}

TEST_P(Strategies, ReplicasThatMeetInDifferentCallsAreRefused) {
  run(2, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    const auto v = variable_of(strategy, "v"), u = variable_of(strategy, "u");
    const auto refused = [&](const std::function<void(ReplicaContext&)>& first,
                             const std::function<void(ReplicaContext&)>& second) {
      return message_of<RuntimeError>([&] {
        strategy.run([&](const Value::Parts&) {
          (replica_id() == 0 ? first : second)(*get_replica_context());
          return Value();
        });
      });
    };
    const auto sum = [](ReplicaContext& context) { context.all_reduce(ReduceOp::sum, gradient(1)); };
    EXPECT_THAT(refused(sum, [](ReplicaContext& context) { context.all_reduce(ReduceOp::mean, gradient(1)); }),
                HasSubstr("replica 0 in all_reduce() by SUM, replica 1 in all_reduce() by MEAN"));
    EXPECT_THAT(refused(sum, [](ReplicaContext& context) { context.all_gather(gradient(1), 0); }),
                HasSubstr("replica 0 in all_reduce() by SUM, replica 1 in all_gather() along axis 0"));
    EXPECT_THAT(refused(sum,
                        [](ReplicaContext& context) {
                          context.merge_call([](Strategy&, const Value::Parts& parts) { return parts[0]; }, {1.0});
                        }),
                HasSubstr("replica 1 in merge_call()"));
    EXPECT_THAT(refused([&](ReplicaContext&) { v->assign_add(gradient(1)); },
                        [&](ReplicaContext&) { u->assign_add(gradient(10)); }),
                HasSubstr("replica 0 in assign_add() of variable 'v', replica 1 in assign_add() of variable 'u'"));
    EXPECT_THAT(refused([&](ReplicaContext&) { v->assign_add(gradient(1)); },
                        [&](ReplicaContext&) { v->assign_sub(gradient(1)); }),
                HasSubstr("replica 0 in assign_add() of variable 'v', replica 1 in assign_sub() of variable 'v'"));
    EXPECT_THAT(components_of(worker, v), Each(0));
    EXPECT_THAT(components_of(worker, u), Each(0));
  });
}

TEST_P(Strategies, ASyncOnReadVariableGivenAsAGradientIsSummed) {
  run(2, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    const auto w = variable_of(strategy, "w");
    const auto accumulated = strategy.create_variable({.name = "accumulated",
                                                       .shape = {1},
                                                       .synchronization = VariableSynchronization::on_read,
                                                       .aggregation = VariableAggregation::sum});
    strategy.run([&](const Value::Parts&) {
      accumulated->assign_add(gradient(1 + replica_id()));
      apply_gradients({{Value(accumulated), w}}, subtract);
      return Value();
    });
    EXPECT_THAT(components_of(worker, w), Each(-3));
    EXPECT_THAT(components_of(worker, accumulated), ElementsAre(1, 2));
  });
}

TEST_P(Strategies, MeansOfIntegersAreDividedToF64) {
  run(2, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    for (const DType dtype : {DType::i32, DType::i64}) {
      const auto mine = [dtype] {
        Device& device = get_replica_context()->device();
        const Tensor tensor = device.allocate(dtype, {2});
        device.compute_stream().launch(op::fill(tensor, 1 + replica_id()));
        return Value(tensor);
      };
      const Value means =
          strategy.run([&](const Value::Parts&) { return get_replica_context()->all_reduce(ReduceOp::mean, mine()); });
      for (const Value& mean : strategy.experimental_local_results(means)) {
        EXPECT_EQ(mean.tensor().dtype(), DType::f64);
        EXPECT_THAT(host_values(worker, mean.tensor()), Each(1.5));
      }
      const Value parts = strategy.run([&](const Value::Parts&) { return mine(); });
      EXPECT_THAT(host_values(worker, strategy.reduce(ReduceOp::mean, parts).tensor()), Each(1.5));
      EXPECT_EQ(strategy.reduce(ReduceOp::sum, parts).tensor().dtype(), dtype);
    }
  });
}

TEST_P(Strategies, LocalResultsOfAValueThatIsNotDistributedAreOne) {
  run(2, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    EXPECT_EQ(strategy.experimental_local_results(5).size(), 1U);
    EXPECT_EQ(strategy.experimental_local_results(Value::list({Value(5)})).size(), 2U) << "one of each replica";
    EXPECT_EQ(strategy.experimental_local_results(Value::per_replica({Value(1), Value(2)})).size(), 2U);
  });
}

TEST_P(Strategies, IntegersBeyondDoublesAreExact) {
  run(2, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    const auto counter = strategy.create_variable({.name = "counter", .dtype = DType::i64, .shape = {1}});
    const auto value = [&] {
      const Tensor host = copied_to_host(worker, counter->read());
      worker.cpu().synchronize();
      return host.values<std::int64_t>()[0];
    };
    for (const std::int64_t number : {(std::int64_t{1} << 53) + 1, std::numeric_limits<std::int64_t>::max(),
                                      std::numeric_limits<std::int64_t>::min(), -(std::int64_t{1} << 60) - 7}) {
      counter->assign(Value::integer(number));
      EXPECT_EQ(value(), number);
    }
    counter->assign(0);
    counter->assign_add(Value::integer((std::int64_t{1} << 62) + 3));
    EXPECT_EQ(value(), (std::int64_t{1} << 62) + 3);
  });
}

}  // namespace
}  // namespace tandem
