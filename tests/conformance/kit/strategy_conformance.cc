#include "tests/conformance/kit/strategy_conformance.h"

#include <gmock/gmock.h>

#include <map>
#include <mutex>

#include "strategies/base/errors.h"
#include "strategies/base/replica_context.h"
#include "strategies/input/dataset.h"
#include "strategies/input/distributed_dataset.h"
#include "strategies/values/host_values.h"
#include "tests/conformance/kit/program_run.h"

namespace tandem {

using testing::Each;

std::vector<StrategyUnderTest> in_every_world(const StrategyTraits& traits) {
  std::vector<StrategyUnderTest> all;
  for (const World& world : built_worlds()) {
    for (const int replicas : {1, 2, 4}) {
      if (replicas > traits.max_replicas) continue;
      all.push_back({traits, world, replicas});
      if (traits.uses_servers) all.push_back({.traits = traits, .world = world, .replicas = replicas, .servers = 2});
      for (int workers = 2; traits.spans_workers && workers <= replicas; workers *= 2) {
        all.push_back({.traits = traits, .world = world, .replicas = replicas, .workers = workers});
      }
    }
  }
  return all;
}

std::ostream& operator<<(std::ostream& out, const StrategyUnderTest& tested) {
  out << tested.traits.name << " with " << tested.replicas << " on " << tested.world.name;
  if (tested.workers > 1) out << " in " << tested.workers << " workers";
  if (tested.servers > 0) out << " and " << tested.servers << " parameter servers";
  return out;
}

std::ostream& operator<<(std::ostream& out, const StrategyTraits& traits) {
  return out << traits.name;
}

std::string StrategyConformance::name(const testing::TestParamInfo<StrategyUnderTest>& info) {
  const StrategyUnderTest& tested = info.param;
  std::string name = tested.traits.name + "_" + std::to_string(tested.replicas);
  if (tested.workers > 1) name += "_in_" + std::to_string(tested.workers) + "_workers";
  if (tested.servers > 0) name += "_with_" + std::to_string(tested.servers) + "_servers";
  return name + "_" + tested.world.name;
}

void StrategyConformance::under_strategy(const World& world, const StrategyProgram& program) const {
  const StrategyUnderTest& tested = GetParam();
  EngineOptions options = world_options(world, tested.workers + tested.servers, tested.local_replicas());
  for (int server = 0; server < tested.servers; ++server) {
    WorkerSpec& spec = options.workers[static_cast<std::size_t>(tested.workers + server)];
    spec.job = "ps";
    spec.task = server;
    spec.device_count = 0;
  }
  open_engine(world.engine, std::move(options))->run([&](Worker& worker) {
    if (worker.job() == "ps") return;
    const std::unique_ptr<Strategy> strategy = make_strategy(tested.traits.name, worker);
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

// Adds the numbers of all workers that train.
std::vector<double> sums_of_workers(Worker& worker, const std::vector<double>& numbers) {
  std::vector<DeviceId> hosts;
  for (const WorkerSpec& spec : worker.cluster()) {
    if (spec.job != "ps") hosts.push_back({.job = spec.job, .task = spec.task, .type = DeviceType::cpu, .index = 0});
  }
  const std::vector<Tensor> sums = {worker.cpu().allocate(DType::f32, {static_cast<std::int64_t>(numbers.size())})};
  std::copy(numbers.begin(), numbers.end(), sums.front().values<float>().begin());
  const std::vector<Stream*> streams = {&worker.cpu().compute_stream()};
  worker.communicator(hosts).all_reduce(sums, Reduction::sum, streams);
  return host_values(worker, sums.front());
}

TEST_P(StrategyConformance, EveryReplicaRunsOnceAndKnowsItself) {
  under_strategy([&](Worker& worker, Strategy& strategy) {
    std::vector<int> ids;
    strategy.run([&](const Value::Parts&) {
      ids.push_back(id());
      EXPECT_EQ(&replica().strategy(), &strategy);
      EXPECT_EQ(replica().num_replicas_in_sync(), strategy.num_replicas_in_sync());
      return Value();
    });
    const int local = GetParam().local_replicas();
    EXPECT_EQ(strategy.num_replicas_in_sync(), GetParam().replicas);
    ASSERT_EQ(static_cast<int>(ids.size()), local);
    for (int i = 0; i < local; ++i) EXPECT_EQ(ids[static_cast<std::size_t>(i)], worker.index() * local + i);
  });
}

TEST_P(StrategyConformance, MergeCallsMeetAndASkippedOneIsAnError) {
  under_strategy([&](Worker& worker, Strategy& strategy) {
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
    const int local = GetParam().local_replicas();
    if (local == 1) return;
    EXPECT_THROW(strategy.run([&](const Value::Parts&) {
      if (id() == worker.index() * local) replica().merge_call([](Strategy&, const Value::Parts&) { return Value(); });
      return Value();
    }),
                 RuntimeError);
    EXPECT_EQ(strategy.run([](const Value::Parts&) { return Value::literal(1); }).number(), 1);
  });
}

TEST_P(StrategyConformance, AnExceptionReachesTheCaller) {
  struct Own {};
  under_strategy([&](Worker& worker, Strategy& strategy) {
    const int last = (worker.index() + 1) * GetParam().local_replicas() - 1;
    const auto fails = [&](const Value::Parts&) -> Value {
      if (id() == last) throw Own();
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
      const int first = worker.index() * GetParam().local_replicas();  // each worker takes its own, as in TensorFlow
      EXPECT_EQ(after(VariableAggregation::only_first_replica, synchronization), 4 * (first + 1));
    }
    const auto v = strategy.create_variable(one_number(1, VariableAggregation::mean));
    v->assign(Value::literal(5));
    for (const Tensor& component : v->components()) EXPECT_EQ(host_values(worker, component).at(0), 5);
    if (GetParam().traits.replicates_variables) {
      EXPECT_EQ(v->components().size(), static_cast<std::size_t>(GetParam().local_replicas()));
    }
  });
}

TEST_P(StrategyConformance, EveryElementOfADatasetComesOnce) {
  under_strategy([&](Worker& worker, Strategy& strategy) {
    auto iterator = strategy.experimental_distribute_dataset(Dataset::range(22).batch(8)).iterator();
    std::vector<double> seen(22);  // how often
    while (const auto batch = iterator.next()) {
      for (const Value& part : strategy.experimental_local_results(*batch)) {
        for (const double element : host_values(worker, part.tensor())) ++seen.at(static_cast<std::size_t>(element));
      }
    }
    EXPECT_THAT(sums_of_workers(worker, seen), Each(1));
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
  std::mutex mutex;  // guards what the workers of real engines note
  const auto seen_by_workers = [&](const World& world) {
    std::map<int, std::vector<double>> seen;
    under_strategy(world, [&](Worker& worker, Strategy& strategy) {
      std::vector<double> values = random_calls(worker, strategy, 7, 30);
      const std::lock_guard lock(mutex);
      seen[worker.index()] = std::move(values);
    });
    return seen;
  };
  const std::map<int, std::vector<double>> expected = seen_by_workers(built_worlds().front());
  for (const auto& [worker, found] : seen_by_workers(GetParam().world)) {  // of several processes, those of this one
    EXPECT_EQ(found, expected.at(worker)) << "worker " << worker;
    EXPECT_GT(found.size(), 30u);
  }
}

TEST_P(StrategyConformance, DrawnProgramsComeToWhatTheyMust) {
  const StrategyUnderTest& tested = GetParam();
  const ProgramWorld world{.replicas = tested.replicas,
                           .workers = tested.workers,
                           .replicates_variables = tested.traits.replicates_variables,
                           .trains_in_step = tested.traits.trains_in_step};
  expect_drawn_programs(world, [&](const StrategyProgram& program) { under_strategy(tested.world, program); });
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
