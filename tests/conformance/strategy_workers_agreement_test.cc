// Workers whose programs do different things, in every world: their collectives are not taken for one another, and the
// message names what each program did. On mpi, every worker is a rank of its own only under mpirun (tests/mpi).
#include <gmock/gmock.h>

#include "strategies/base/errors.h"
#include "strategies/cross_device/host_values.h"
#include "strategies/input/dataset.h"
#include "strategies/input/distributed_dataset.h"
#include "strategies/types/multi_worker_mirrored.h"
#include "strategies/variables/apply_gradients.h"
#include "tests/conformance/strategy_testing.h"

namespace tandem {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

class Workers : public InEveryWorld {
 protected:
  using Part = std::function<void(MultiWorkerMirroredStrategy&)>;

  // Runs two workers, whose number of devices is given, and returns the message with which the run ends.
  std::string message_of_run(int devices, const Part& part) const {
    EngineOptions options = world_options(GetParam(), 2, devices);
    options.deadlock_timeout_s = 5;
    return message_of<Error>([&] {
      open_engine(GetParam().engine, options)->run([&](Worker& worker) {
        MultiWorkerMirroredStrategy strategy(worker);
        part(strategy);
      });
    });
  }
  static int worker_of(Strategy& strategy) { return strategy.extended().worker().index(); }
  static bool is_first(Strategy& strategy) { return worker_of(strategy) == 0; }
};
INSTANTIATE_TEST_SUITE_P(All, Workers, testing::ValuesIn(built_worlds()), name_of_world);

std::shared_ptr<Variable> workers_variable(Strategy& strategy, const std::string& name,
                                           VariableSynchronization when = {}) {
  return strategy.create_variable(
      {.name = name, .shape = {1}, .synchronization = when, .aggregation = VariableAggregation::sum});
}

Value ones(Shape shape) {
  return filled(get_replica_context()->device(), shape, 1);
}

TEST_P(Workers, SumAndMeanAreNotAdded) {
  const std::string message = message_of_run(1, [](MultiWorkerMirroredStrategy& strategy) {
    strategy.run([&](const Value::Parts&) {
      return get_replica_context()->all_reduce(is_first(strategy) ? ReduceOp::sum : ReduceOp::mean, ones({2}));
    });
  });
  EXPECT_THAT(message, AllOf(HasSubstr("calls all_reduce of 2 f32 (sum) for all_reduce() by SUM, SUM of f32[2]"),
                             HasSubstr("calls all_reduce of 2 f32 (sum) for all_reduce() by MEAN, MEAN of f32[2]"),
                             HasSubstr("must make the same calls in the same order")));
}

TEST_P(Workers, TensorsOfOtherShapesAndAsManyElementsAreNotAdded) {
  const std::string message = message_of_run(2, [](MultiWorkerMirroredStrategy& strategy) {
    strategy.run([&](const Value::Parts&) {
      return get_replica_context()->all_reduce(ReduceOp::sum, ones(is_first(strategy) ? Shape{2, 3} : Shape{3, 2}));
    });
  });
  EXPECT_THAT(message, AllOf(HasSubstr("all_reduce() by SUM, SUM of f32[2, 3]"),
                             HasSubstr("all_reduce() by SUM, SUM of f32[3, 2]")));
}

TEST_P(Workers, GradientsInAnotherOrderMeetByTheirVariables) {
  const std::string message = message_of_run(1, [](MultiWorkerMirroredStrategy& strategy) {
    Worker& worker = strategy.extended().worker();
    const auto a = workers_variable(strategy, "a"), b = workers_variable(strategy, "b");
    const auto rule = [](Variable& variable, const Value& sum) { variable.assign_add(sum); };
    strategy.run([&](const Value::Parts&) {
      Device& device = get_replica_context()->device();
      const Value one = filled(device, {1}, 1), ten = filled(device, {1}, 10);
      is_first(strategy) ? apply_gradients({{one, a}, {ten, b}}, rule) : apply_gradients({{ten, b}, {one, a}}, rule);
      return Value();
    });
    EXPECT_EQ(host_values(worker, a->read()).at(0), 2);
    EXPECT_EQ(host_values(worker, b->read()).at(0), 20);
  });
  EXPECT_EQ(message, "no error");
}

TEST_P(Workers, GradientsOfOtherVariablesAreRefused) {
  const std::string message = message_of_run(1, [](MultiWorkerMirroredStrategy& strategy) {
    const auto a = workers_variable(strategy, "a"), b = workers_variable(strategy, "b");
    strategy.run([&](const Value::Parts&) {
      apply_gradients({{ones({1}), is_first(strategy) ? a : b}},
                      [](Variable& variable, const Value& sum) { variable.assign_add(sum); });
      return Value();
    });
  });
  EXPECT_THAT(message,
              AllOf(HasSubstr("apply_gradients() of variable 'a'"), HasSubstr("apply_gradients() of variable 'b'")));
}

TEST_P(Workers, AMetricThatTheFirstWorkerReadsAloneIsNamed) {
  const std::string alone = message_of_run(1, [](MultiWorkerMirroredStrategy& strategy) {
    const auto accuracy = workers_variable(strategy, "accuracy", VariableSynchronization::on_read);
    if (is_first(strategy)) accuracy->read();
    strategy.extended().worker().cpu().synchronize();
    for (Device* device : strategy.extended().worker_devices()) device->synchronize();
  });
  EXPECT_THAT(alone, AllOf(HasSubstr("all_reduce #"), HasSubstr("for read() of variable 'accuracy'")));
  const std::string beside = message_of_run(1, [](MultiWorkerMirroredStrategy& strategy) {
    const auto accuracy = workers_variable(strategy, "accuracy", VariableSynchronization::on_read);
    const auto w = workers_variable(strategy, "w");
    if (is_first(strategy)) accuracy->read();
    strategy.run([&](const Value::Parts&) {
      w->assign_add(ones({1}));
      return Value();
    });
  });
  EXPECT_THAT(beside, AllOf(HasSubstr("for read() of variable 'accuracy', SUM of f32[1]"),
                            HasSubstr("for assign_add() of variable 'w', SUM of f32[1]")));
}

TEST_P(Workers, AVariableThatOneWorkerCreatesIsNamed) {
  const std::string message = message_of_run(
      1, [](MultiWorkerMirroredStrategy& strategy) { workers_variable(strategy, is_first(strategy) ? "w" : "u"); });
  EXPECT_THAT(message, AllOf(HasSubstr("for the creation of variable 'w' f32[1]"),
                             HasSubstr("for the creation of variable 'u' f32[1]")));
}

TEST_P(Workers, TheNextStepOfADatasetThatOneWorkerAsksForIsNamed) {
  const std::string message = message_of_run(1, [](MultiWorkerMirroredStrategy& strategy) {
    const DistributedDataset dataset =
        strategy.distribute_datasets_from_function([](const InputContext&) { return Dataset::range(4).batch(1); });
    DistributedIterator iterator = dataset.iterator();
    while (iterator.next()) {
      if (!is_first(strategy)) break;
    }
    strategy.reduce(ReduceOp::sum, 1);
  });
  EXPECT_THAT(message,
              AllOf(HasSubstr("for the next step of a distributed dataset"), HasSubstr("for reduce() by SUM")));
}

// assign() in a cross-replica context goes to this worker's components only, and so does the first replica's value.
TEST_P(Workers, AChangeThatOneWorkerMakesAloneIsFoundWhereTheyMeetNext) {
  const auto message = [&](const Part& change) {
    return message_of_run(1, [&](MultiWorkerMirroredStrategy& strategy) {
      change(strategy);
      strategy.reduce(ReduceOp::sum, 1);
    });
  };
  EXPECT_THAT(
      message([](MultiWorkerMirroredStrategy& strategy) {
        const auto w = workers_variable(strategy, "w");
        w->assign(1);
        for (int i = 0; i < (is_first(strategy) ? 3 : 2); ++i) w->assign_add(1);
      }),
      AllOf(HasSubstr("for reduce() by SUM, after assign() of variable 'w', assign_add() of variable 'w' (3 times)"),
            HasSubstr("for reduce() by SUM, after assign() of variable 'w', assign_add() of variable 'w' (2 times)")));
  EXPECT_THAT(message([](MultiWorkerMirroredStrategy& strategy) {
                const auto step = strategy.create_variable(
                    {.name = "step", .shape = {1}, .aggregation = VariableAggregation::only_first_replica});
                strategy.run([&](const Value::Parts&) {
                  if (is_first(strategy)) step->assign_add(ones({1}));
                  return Value();
                });
              }),
              HasSubstr("for reduce() by SUM, after assign_add() of variable 'step'"));
  EXPECT_EQ(message([](MultiWorkerMirroredStrategy& strategy) {
              const auto w = workers_variable(strategy, "w");
              w->assign(1 + worker_of(strategy));  // each its own value, as their programs say
            }),
            "no error");
}

// A message shows only the part in which long lists differ.
TEST_P(Workers, TheFirstDifferenceOfManyVariablesIsShown) {
  const std::string message = message_of_run(1, [](MultiWorkerMirroredStrategy& strategy) {
    std::vector<GradientAndVariable> gradients;
    std::vector<std::shared_ptr<Variable>> variables;
    for (int i = 0; i < 40; ++i) variables.push_back(workers_variable(strategy, "layer" + std::to_string(i)));
    strategy.run([&](const Value::Parts&) {
      for (int i = 0; i < 40; ++i) {
        if (i != (is_first(strategy) ? 21 : 30)) {
          gradients.emplace_back(ones({1}), variables[static_cast<std::size_t>(i)]);
        }
      }
      apply_gradients(gradients, [](Variable& variable, const Value& sum) { variable.assign_add(sum); });
      return Value();
    });
  });
  EXPECT_THAT(message, AllOf(HasSubstr("for ... "), HasSubstr("'layer20', 'layer21'"),
                             HasSubstr("'layer20', 'layer22'"), testing::Not(HasSubstr("'layer0',"))));
}

}  // namespace
}  // namespace tandem
