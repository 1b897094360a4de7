// Random generators: streams of replicas that are the same in every world.
#include <gmock/gmock.h>

#include <unistd.h>
#include <cmath>
#include <filesystem>
#include <set>

#include "strategies/base/errors.h"
#include "strategies/cross_device/host_values.h"
#include "strategies/strategy/context.h"
#include "strategies/training/random_generator.h"
#include "strategies/types/central_storage.h"
#include "strategies/types/mirrored.h"
#include "strategies/types/multi_worker_mirrored.h"
#include "strategies/types/one_device.h"
#include "strategies/variables/checkpoint.h"
#include "tests/conformance/strategy_testing.h"

namespace tandem {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Draws on every replica, in the order of this worker's replicas.
template <typename Draw>
std::vector<std::vector<double>> drawn(Worker& worker, Strategy& strategy, const Draw& draw) {
  std::vector<std::vector<double>> result;
  strategy.run([&](const Value::Parts&) -> Value {
    const Tensor tensor = draw();
    EXPECT_EQ(&tensor.device(), &get_replica_context()->device());
    result.push_back(host_values(worker, tensor));
    return {};
  });
  return result;
}

// What replica r of seed 7 draws: blocks of the key {7, 0} at {i, 0, 0, r}.
std::vector<double> expected_uniform(int replica, std::uint32_t first, std::uint32_t count) {
  std::vector<double> values;
  for (std::uint32_t i = first; i < first + count; ++i) {
    values.push_back((philox({i, 0, 0, static_cast<std::uint32_t>(replica)}, {7, 0})[0] >> 8) * 0x1p-24);
  }
  return values;
}

TEST_P(Strategies, EveryReplicaHasAStreamOfItsOwn) {
  run(4, [](Worker& worker) {
    MirroredStrategy mirrored(worker, devices_of(worker));
    CentralStorageStrategy central(worker, devices_of(worker));
    for (Strategy* strategy : {static_cast<Strategy*>(&mirrored), static_cast<Strategy*>(&central)}) {
      const Scope scope = strategy->scope();
      auto generator = RandomGenerator::from_seed(7);
      const auto first = drawn(worker, *strategy, [&] { return generator.uniform({2, 2}); });
      const auto second = drawn(worker, *strategy, [&] { return generator.uniform({3}); });
      for (int replica = 0; replica < 4; ++replica) {
        EXPECT_EQ(first[static_cast<std::size_t>(replica)], expected_uniform(replica, 0, 4));
        EXPECT_EQ(second[static_cast<std::size_t>(replica)], expected_uniform(replica, 4, 3));
      }
    }
  });
}

TEST_P(Strategies, StreamsDoNotDependOnTheWorkersThatShareTheReplicas) {
  open_world(GetParam(), 2, 2)->run([](Worker& worker) {
    MultiWorkerMirroredStrategy strategy(worker);
    const Scope scope = strategy.scope();
    auto generator = RandomGenerator::from_seed(7);
    const auto values = drawn(worker, strategy, [&] { return generator.uniform({3}); });
    for (int local = 0; local < 2; ++local) {
      EXPECT_EQ(values[static_cast<std::size_t>(local)], expected_uniform(2 * worker.index() + local, 0, 3));
    }
  });
}

TEST_P(Strategies, RandomNumbersAreDistributedAsAsked) {
  run(1, [](Worker& worker) {
    auto generator = RandomGenerator::from_seed(1);
    const auto moments = [&](const Tensor& tensor) {
      const std::vector<double> values = host_values(worker, tensor);
      double sum = 0, squares = 0;
      for (const double value : values) sum += value, squares += value * value;
      const auto count = static_cast<double>(values.size());
      return std::pair(sum / count, std::sqrt(squares / count - sum / count * (sum / count)));
    };
    constexpr std::int64_t kCount = 40000;  // five standard errors of the mean are 0.025 deviations
    for (const DType dtype : {DType::f32, DType::f64}) {
      const auto [mean, deviation] = moments(generator.normal({kCount}, 3, 2, dtype));
      EXPECT_NEAR(mean, 3, 0.05);
      EXPECT_NEAR(deviation, 2, 0.05);
      const auto [middle, spread] = moments(generator.uniform({kCount}, -1, 3, dtype));
      EXPECT_NEAR(middle, 1, 0.03);
      EXPECT_NEAR(spread, 4 / std::sqrt(12), 0.03);
    }
    for (const DType dtype : {DType::i32, DType::i64}) {
      const std::vector<double> dice = host_values(worker, generator.uniform({1000}, 1, 7, dtype));
      EXPECT_EQ(std::set<double>(dice.begin(), dice.end()), (std::set<double>{1, 2, 3, 4, 5, 6}));
      const double half = dtype == DType::i32 ? 0x1p31 : 0x1p63;
      const std::vector<double> full = host_values(worker, generator.uniform_full_int({1000}, dtype));
      EXPECT_LT(*std::ranges::min_element(full), -0.9 * half);
      EXPECT_GT(*std::ranges::max_element(full), 0.9 * half);
    }
    const std::vector<double> narrow = host_values(worker, generator.uniform({1000}, 1, 1 + 0x1p-23));
    EXPECT_EQ(std::set<double>(narrow.begin(), narrow.end()), std::set<double>{1});
    EXPECT_EQ(message_of<ValueError>([&] { generator.uniform({1}, 2, 2); }), "uniform() in [2, 2), which is empty");
    EXPECT_THAT(message_of<ValueError>([&] { generator.uniform({1}, 0, 1.5, DType::i32); }), HasSubstr("not whole"));
    EXPECT_THAT(message_of<ValueError>([&] { generator.uniform({1}, 0, 1e12, DType::i32); }), HasSubstr("beyond"));
    EXPECT_THAT(message_of<TypeError>([&] { generator.normal({1}, 0, 1, DType::i32); }), HasSubstr("of type i32"));
    EXPECT_THAT(message_of<TypeError>([&] { generator.uniform({1}, 0, 1, DType::u8); }), HasSubstr("of type u8"));
    EXPECT_THAT(message_of<TypeError>([&] { generator.uniform_full_int({1}, DType::f32); }), HasSubstr("of type f32"));
  });
}

TEST_P(Strategies, GeneratorsSkipSplitAndStartAgain) {
  run(2, [](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    const Scope scope = strategy.scope();
    auto a = RandomGenerator::from_seed(7), b = RandomGenerator::from_seed(7);
    const auto next = [&](RandomGenerator& generator) {
      return drawn(worker, strategy, [&] { return generator.uniform({2}); });
    };
    drawn(worker, strategy, [&] { return a.normal({5}); });
    b.skip(5);
    EXPECT_EQ(next(a), next(b));
    strategy.run([&](const Value::Parts&) -> Value {
      if (replica_id() == 1) a.skip(10);
      return {};
    });
    const auto of_a = next(a);
    EXPECT_EQ(of_a[0], expected_uniform(0, 7, 2));
    EXPECT_EQ(of_a[1], expected_uniform(1, 17, 2));
    EXPECT_THAT(message_of<ValueError>([&] { a.skip(-1); }), HasSubstr("must not be negative"));

    std::vector<RandomGenerator> children = a.split(2), more = a.split(1), same = b.split(2);
    EXPECT_EQ(next(children[0]), next(same[0]));
    EXPECT_EQ(next(children[1]), next(same[1]));
    std::set<std::vector<double>> streams;
    for (RandomGenerator* child : {&children[0], &children[1], &more[0]}) {
      for (const auto& values : next(*child)) streams.insert(values);
    }
    EXPECT_EQ(streams.size(), 6u);

    const auto state = host_values(worker, a.state()->value());
    EXPECT_THAT(state, ElementsAre(9, 0, 0, 0, 7, 0, 19, 0, 0, 1, 7, 0, 3, 0, 0, 4294967295.0, 7, 0));
    const auto expected = next(a);
    a.state()->assign(Value(constant(worker.cpu(), state, Shape{3, 6}, DType::i64)));
    EXPECT_EQ(next(a), expected);
    a.reset_from_seed(7);
    EXPECT_EQ(next(a)[1], expected_uniform(1, 0, 2));

    const auto refused = [&](const std::function<void()>& call) {
      return message_of<RuntimeError>([&] {
        strategy.run([&](const Value::Parts&) -> Value {
          call();
          return {};
        });
      });
    };
    EXPECT_THAT(refused([&] { a.split(1); }), HasSubstr("split() ('generator') is called inside run()"));
    EXPECT_THAT(refused([&] { RandomGenerator::from_seed(1); }), HasSubstr("creation ('generator') is called inside"));
    EXPECT_EQ(
        message_of<RuntimeError>([&] { a.uniform({1}); }),
        "uniform() of random generator 'generator' is called outside run() of strategy 'mirrored', in whose scope "
        "it was made; it has a stream for each replica");
  });
}

TEST_P(Strategies, ReplicasOfAWorkerTakeTurnsAtAGeneratorFromOutsideTheScope) {
  open_world(GetParam(), 2, 2)->run([](Worker& worker) {
    auto generator = RandomGenerator::from_seed(7, "outside");
    EXPECT_EQ(host_values(worker, generator.uniform({2})), expected_uniform(0, 0, 2));
    MirroredStrategy mirrored(worker, devices_of(worker));
    const auto values = drawn(worker, mirrored, [&] { return generator.uniform({3}); });
    EXPECT_EQ(values[0], expected_uniform(0, 2, 3));
    EXPECT_EQ(values[1], expected_uniform(0, 5, 3));
    MultiWorkerMirroredStrategy both(worker);
    EXPECT_EQ(
        message_of<RuntimeError>([&] { drawn(worker, both, [&] { return generator.uniform({3}); }); }),
        "uniform() of random generator 'outside' is called inside run() of strategy 'multi_worker_mirrored', and "
        "was made outside its scope: the replicas of different workers would draw the same numbers; make it in the "
        "scope");
  });
}

TEST_P(Strategies, GeneratorsGoOnFromACheckpointOfAsManyReplicas) {
  const std::string file = (std::filesystem::temp_directory_path() /
                            ("tandem-generator-" + GetParam().name + "-" + std::to_string(::getppid())))
                               .string();
  open_world(GetParam(), 2, 2)->run([&](Worker& worker) {
    MultiWorkerMirroredStrategy strategy(worker);
    const auto generator = std::make_shared<RandomGenerator>([&] {
      const Scope scope = strategy.scope();
      return RandomGenerator::from_seed(7);
    }());
    Checkpoint checkpoint(worker);
    generator->add_to(checkpoint);
    drawn(worker, strategy, [&] { return generator->uniform({1 + replica_id()}); });
    checkpoint.save(file);
    strategy.reduce(ReduceOp::sum, Value(0.0));
    const auto after = drawn(worker, strategy, [&] { return generator->uniform({2}); });
    for (int local = 0; local < 2; ++local) {
      const int replica = 2 * worker.index() + local;
      EXPECT_EQ(after[static_cast<std::size_t>(local)],
                expected_uniform(replica, 1 + static_cast<std::uint32_t>(replica), 2));
    }
    checkpoint.restore(file);
    EXPECT_EQ(drawn(worker, strategy, [&] { return generator->uniform({2}); }), after);
    checkpoint.save(file);  // again of all workers, with the rows of each from itself
    strategy.reduce(ReduceOp::sum, Value(0.0));

    MirroredStrategy fewer(worker, devices_of(worker));
    const auto other = std::make_shared<RandomGenerator>([&] {
      const Scope scope = fewer.scope();
      return RandomGenerator::from_seed(7);
    }());
    Checkpoint of_fewer(worker);
    other->add_to(of_fewer);
    EXPECT_EQ(message_of<ValueError>([&] { of_fewer.restore(file); }),
              file +
                  ": 'generator/state' is i64 [5, 6], and the variable is i64 [3, 6]: the state of a random generator "
                  "has a row for each replica in sync, of which there are 2 here, and one more");
    strategy.reduce(ReduceOp::sum, Value(0.0));
  });
  // As many replicas in one process.
  open_world(GetParam(), 1, 4)->run([&](Worker& worker) {
    MirroredStrategy strategy(worker, devices_of(worker));
    const Scope scope = strategy.scope();
    auto generator = RandomGenerator::from_seed(1);
    Checkpoint checkpoint(worker);
    generator.add_to(checkpoint);
    checkpoint.restore(file);
    const auto values = drawn(worker, strategy, [&] { return generator.uniform({2}); });
    for (int replica = 0; replica < 4; ++replica) {
      EXPECT_EQ(values[static_cast<std::size_t>(replica)],
                expected_uniform(replica, 3 + static_cast<std::uint32_t>(replica), 2));
    }
  });
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace tandem
