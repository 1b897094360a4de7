#include "tests/conformance/kit/strategy_conformance.h"

#include <gmock/gmock.h>

#include "strategies/base/errors.h"
#include "strategies/base/replica_context.h"
#include "strategies/input/dataset.h"
#include "strategies/input/distributed_dataset.h"
#include "strategies/values/host_values.h"

namespace tandem {

using testing::Each;

std::vector<StrategyUnderTest> in_every_world(const StrategyTraits& traits) {
  std::vector<StrategyUnderTest> all;
  for (const World& world : built_worlds()) {
    for (const int replicas : {1, 2, 4}) {
      if (replicas <= traits.max_replicas) all.push_back({traits, world, replicas});
    }
  }
  return all;
}

std::ostream& operator<<(std::ostream& out, const StrategyUnderTest& tested) {
  return out << tested.traits.name << " with " << tested.replicas << " on " << tested.world.name;
}

std::ostream& operator<<(std::ostream& out, const StrategyTraits& traits) {
  return out << traits.name;
}

std::string StrategyConformance::name(const testing::TestParamInfo<StrategyUnderTest>& info) {
  return info.param.traits.name + "_" + std::to_string(info.param.replicas) + "_" + info.param.world.name;
}

void StrategyConformance::under_strategy(const std::function<void(Worker&, Strategy&)>& program) const {
  open_world(GetParam().world, 1, GetParam().replicas)->run([&](Worker& worker) {
    const std::unique_ptr<Strategy> strategy = make_strategy(GetParam().traits.name, worker);
    program(worker, *strategy);
  });
}

namespace {

ReplicaContext& replica() {
  return *get_replica_context();
}
int id() {
  return replica().replica_id_in_sync_group();
}
Tensor filled(Device& device, const Shape& shape, double value) {
  Tensor tensor = device.allocate(DType::f32, shape);
  device.compute_stream().launch(op::fill(tensor, value));
  return tensor;
}
VariableSpec one_number(double initial, VariableAggregation aggregation,
                        VariableSynchronization synchronization = VariableSynchronization::automatic) {
  return {.name = "v",
          .shape = {1},
          .initial_value = [initial](std::int64_t) { return initial; },
          .synchronization = synchronization,
          .aggregation = aggregation};
}

TEST_P(StrategyConformance, EveryReplicaRunsOnceAndKnowsItself) {
  under_strategy([&](Worker&, Strategy& strategy) {
    std::vector<int> ids;
    strategy.run([&](const Value::Parts&) {
      ids.push_back(id());
      EXPECT_EQ(&replica().strategy(), &strategy);
      EXPECT_EQ(replica().num_replicas_in_sync(), strategy.num_replicas_in_sync());
      return Value();
    });
    ASSERT_EQ(static_cast<int>(ids.size()), GetParam().replicas);
    for (int i = 0; i < GetParam().replicas; ++i) EXPECT_EQ(ids[static_cast<std::size_t>(i)], i);
  });
}

TEST_P(StrategyConformance, MergeCallsMeetAndASkippedOneIsAnError) {
  under_strategy([&](Worker&, Strategy& strategy) {
    int merges = 0;
    strategy.run([&](const Value::Parts&) {
      for (int i = 0; i < 3; ++i) {
        replica().merge_call([&](Strategy&, const Value::Parts&) {
          ++merges;
          return Value();
        });
      }
      return Value();
    });
    EXPECT_EQ(merges, 3);
    if (GetParam().replicas == 1) return;
    EXPECT_THROW(strategy.run([&](const Value::Parts&) {
      if (id() == 0) replica().merge_call([](Strategy&, const Value::Parts&) { return Value(); });
      return Value();
    }),
                 RuntimeError);
    EXPECT_EQ(strategy.run([](const Value::Parts&) { return Value::literal(1); }).number(), 1);
  });
}

TEST_P(StrategyConformance, AnExceptionReachesTheCaller) {
  struct Own {};
  under_strategy([&](Worker&, Strategy& strategy) {
    const auto fails = [&](const Value::Parts&) -> Value {
      if (id() == GetParam().replicas - 1) throw Own();
      replica().merge_call([](Strategy&, const Value::Parts&) { return Value(); });
      return {};
    };
    EXPECT_THROW(strategy.run(fails), Own);
    EXPECT_EQ(strategy.run([](const Value::Parts&) { return Value::literal(1); }).number(), 1);
  });
}

TEST_P(StrategyConformance, ReductionsAndGathersAreExact) {
  under_strategy([&](Worker& worker, Strategy& strategy) {
    const int n = GetParam().replicas;
    const Value values =
        strategy.run([&](const Value::Parts&) { return Value(filled(replica().device(), {3}, 4 * (id() + 1))); });
    EXPECT_THAT(host_values(worker, strategy.reduce(ReduceOp::sum, values).tensor()), Each(2.0 * n * (n + 1)));
    EXPECT_THAT(host_values(worker, strategy.reduce(ReduceOp::mean, values).tensor()), Each(2.0 * (n + 1)));
    EXPECT_EQ(host_values(worker, strategy.reduce(ReduceOp::sum, values, 0).tensor()).at(0), 6.0 * n * (n + 1));
    const Value gathered = strategy.gather(values, 0);
    EXPECT_EQ(gathered.tensor().shape(), Shape({3L * n}));
    const Value sums = strategy.run([&](const Value::Parts&) {
      return replica().all_reduce(ReduceOp::sum, Value(filled(replica().device(), {2}, id() + 1)));
    });
    for (const Value& part : strategy.experimental_local_results(sums)) {
      EXPECT_THAT(host_values(worker, part.tensor()), Each(n * (n + 1) / 2.0));
    }
  });
}

TEST_P(StrategyConformance, VariablesAggregate) {
  under_strategy([&](Worker& worker, Strategy& strategy) {
    const int n = GetParam().replicas;
    const auto after = [&](VariableAggregation aggregation, VariableSynchronization synchronization) {
      const auto v = strategy.create_variable(one_number(0, aggregation, synchronization));
      strategy.run([&](const Value::Parts&) {
        v->assign_add(filled(replica().device(), {1}, 4 * (id() + 1)));
        return Value();
      });
      return host_values(worker, v->read()).at(0);
    };
    for (const auto synchronization : {VariableSynchronization::automatic, VariableSynchronization::on_read}) {
      EXPECT_EQ(after(VariableAggregation::sum, synchronization), 2 * n * (n + 1));
      EXPECT_EQ(after(VariableAggregation::mean, synchronization), 2 * (n + 1));
      EXPECT_EQ(after(VariableAggregation::only_first_replica, synchronization), 4);
    }
    const auto v = strategy.create_variable(one_number(1, VariableAggregation::mean));
    v->assign(Value::literal(5));
    for (const Tensor& component : v->components()) EXPECT_EQ(host_values(worker, component).at(0), 5);
    if (GetParam().traits.replicates_variables) {
      EXPECT_EQ(v->components().size(), static_cast<std::size_t>(n));
    }
  });
}

TEST_P(StrategyConformance, EveryElementOfADatasetComesOnce) {
  under_strategy([&](Worker& worker, Strategy& strategy) {
    auto iterator = strategy.experimental_distribute_dataset(Dataset::range(22).batch(8)).iterator();
    std::vector<double> seen;
    while (const auto batch = iterator.next()) {
      for (const Value& part : strategy.experimental_local_results(*batch)) {
        for (const double element : host_values(worker, part.tensor())) seen.push_back(element);
      }
    }
    std::sort(seen.begin(), seen.end());
    ASSERT_EQ(seen.size(), 22u);
    for (std::size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i], static_cast<double>(i));
  });
}

// Gradient descent on (w - 8)^2 / 2 with rate 1/2: each replica has an equal share of the gradient.
std::vector<double> descend(Worker& worker, Strategy& strategy, int steps) {
  const auto w = strategy.create_variable(one_number(0, VariableAggregation::sum));
  std::vector<double> path;
  for (int step = 0; step < steps; ++step) {
    strategy.run([&](const Value::Parts&) {
      const double share = 1.0 / strategy.num_replicas_in_sync();
      const Tensor gradient = filled(replica().device(), {1}, -8 * share);
      replica().device().compute_stream().launch(op::scale_add(gradient, w->value(), share, 1));
      replica().merge_call(
          [&](Strategy& merging, const Value::Parts& arguments) {
            StrategyExtended& extended = merging.extended();
            const Value sum = extended.begin_batch_reduce_to(ReduceOp::sum, {{arguments[0], w}}).wait().front();
            extended.update(
                w,
                [](Variable& v, const Value::Parts& parts) {
                  v.handle().device().compute_stream().launch(op::scale_add(v.handle(), parts[0].tensor(), -0.5, 1));
                  return Value();
                },
                {sum});
            return Value();
          },
          {Value(gradient)});
      return Value();
    });
    path.push_back(host_values(worker, w->read()).at(0));
  }
  return path;
}

TEST_P(StrategyConformance, TrainingDescends) {
  under_strategy([&](Worker& worker, Strategy& strategy) {
    const std::vector<double> path = descend(worker, strategy, 12);
    EXPECT_NEAR(path.back(), 8, 0.01);
    if (!GetParam().traits.trains_in_step) return;
    double w = 0;
    for (const double found : path) EXPECT_EQ(found, w += (8 - w) / 2);
  });
}

TEST_P(StrategyConformance, RandomCallsEndAlikeInEveryWorld) {
  std::vector<double> expected, found;
  const auto calls = [&](std::vector<double>& into) {
    return [&](Worker& worker) {
      const std::unique_ptr<Strategy> strategy = make_strategy(GetParam().traits.name, worker);
      into = random_calls(worker, *strategy, 7, 30);
    };
  };
  open_world(built_worlds().front(), 1, GetParam().replicas)->run(calls(expected));
  open_world(GetParam().world, 1, GetParam().replicas)->run(calls(found));
  EXPECT_EQ(found, expected);
  EXPECT_GT(found.size(), 30u);
}

const World* simulated_world() {
  static const std::vector<World> worlds = built_worlds();
  for (const World& world : worlds) {
    if (world.collectives) return &world;
  }
  return nullptr;
}

TEST_P(StrategyAtScale, TrainsOn64GpusWithEqualValuesAndEqualTimes) {
  const World* world = simulated_world();
  if (!world) GTEST_SKIP() << "no simulated engine was built";
  const int replicas = GetParam().max_replicas == 1 ? 1 : 64;
  const auto train = [&](std::vector<double>& path) {
    Nanoseconds end = 0;
    open_world(*world, 1, replicas)->run([&](Worker& worker) {
      const std::unique_ptr<Strategy> strategy = make_strategy(GetParam().name, worker);
      path = descend(worker, *strategy, 12);
      end = worker.now();
    });
    return end;
  };
  std::vector<double> first, second;
  const Nanoseconds took = train(first);
  EXPECT_GT(took, 0);
  EXPECT_EQ(train(second), took);
  EXPECT_EQ(first, second);
  EXPECT_NEAR(first.back(), 8, 0.01);
}

// Every seed another order of what is ready at the same time: the values must not depend on it.
TEST_P(StrategyAtScale, RandomCallsDoNotDependOnTheSchedule) {
  const World* world = simulated_world();
  if (!world) GTEST_SKIP() << "no simulated engine was built";
  const int seeds = std::getenv("TANDEM_SEEDS") ? std::atoi(std::getenv("TANDEM_SEEDS")) : 1000;
  const int replicas = std::min(GetParam().max_replicas, 3);
  const auto under = [&](std::optional<std::uint64_t> seed, std::uint64_t program) {
    World seeded = *world;
    seeded.schedule_seed = seed;
    std::vector<double> values;
    open_world(seeded, 1, replicas)->run([&](Worker& worker) {
      const std::unique_ptr<Strategy> strategy = make_strategy(GetParam().name, worker);
      values = random_calls(worker, *strategy, program, 6);
    });
    return values;
  };
  for (int seed = 1; seed <= seeds; ++seed) {
    const auto program = static_cast<std::uint64_t>(seed % 20);
    ASSERT_EQ(under(static_cast<std::uint64_t>(seed), program), under(std::nullopt, program))
        << "schedule seed " << seed << " of random program " << program;
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(StrategyConformance);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(StrategyAtScale);

}  // namespace

std::string StrategyAtScale::name(const testing::TestParamInfo<StrategyTraits>& info) {
  return info.param.name;
}

}  // namespace tandem
