// A coordinator whose workers are lost and come back, on every engine that loses workers.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <atomic>
#include <random>

#include "engine/faults/faults.h"
#include "strategies/base/errors.h"
#include "strategies/servers/cluster_coordinator.h"
#include "strategies/strategy/context.h"
#include "tests/conformance/strategy_testing.h"

namespace tandem {
namespace {

using testing::AllOf;
using testing::Each;
using testing::Ge;
using testing::HasSubstr;
using testing::Le;

// In the run: a chief, two workers, and a parameter server.
constexpr int kChief = 0, kSecondWorker = 2, kServer = 3;
constexpr int kScheduled = 12;
constexpr double kNeverBack = std::numeric_limits<double>::infinity();

class LostWorkers : public ReachingOthers<InEveryWorld> {
 protected:
  void SetUp() override {
    ReachingOthers<InEveryWorld>::SetUp();
    if (engine_info(GetParam().engine).faults == FaultSupport::none) GTEST_SKIP() << "this engine loses no workers";
    if (!IsSkipped() && !open_world(GetParam(), 2, 1)->capabilities().shared_objects) {
      GTEST_SKIP() << "several processes lose a worker for good";
    }
  }

  // Runs the chief's program.
  void run(std::vector<LostWorker> lost, const Program& program) const {
    EngineOptions options = world_options(GetParam(), 4, 1);
    const char* const jobs[] = {"chief", "worker", "worker", "ps"};
    const int tasks[] = {0, 0, 1, 0};
    for (std::size_t i = 0; i < options.workers.size(); ++i) {
      options.workers[i].job = jobs[i];
      options.workers[i].task = tasks[i];
    }
    options.workers[kServer].device_count = 0;
    for (LostWorker& one : lost) one.ends_run = false;
    options.faults = std::make_shared<const Faults>(Faults{.lost_workers = std::move(lost)});
    open_engine(GetParam().engine, std::move(options))->run([&](Worker& worker) {
      if (worker.index() == kChief) program(worker);
    });
  }
};
INSTANTIATE_TEST_SUITE_P(Worlds, LostWorkers, testing::ValuesIn(built_worlds()), name_of_world);

// Some functions that each add 1 to a variable: how often each has begun, where, and what it returns.
struct Counted {
  std::vector<std::atomic<int>> begun = std::vector<std::atomic<int>>(kScheduled);
  std::atomic<int> on_second{0};
  std::vector<RemoteValue> results{};
};

template <typename Variable>
void schedule_all(ClusterCoordinator& coordinator, ParameterServerStrategyV2& strategy, Variable& total,
                  Counted& counted) {
  for (int i = 0; i < kScheduled; ++i) {
    counted.results.push_back(coordinator.schedule([&, i]() -> Value {
      ++counted.begun[static_cast<std::size_t>(i)];
      if (coordinator.worker_index() == 1) ++counted.on_second;
      return strategy.run([&, i](const Value::Parts&) -> Value {
        Device& device = get_replica_context()->device();
        const Tensor mine = filled(device, {4}, i);
        total.assign_add(filled(device, {4}, 1));
        return mine;
      });
    }));
  }
}

std::vector<int> counts(const Counted& counted) {
  return {counted.begun.begin(), counted.begun.end()};
}

TEST_P(LostWorkers, AnotherOneRunsTheirFunctions) {
  run({{.worker = kSecondWorker, .step = 1}}, [](Worker& chief) {
    ParameterServerStrategyV2 strategy(chief);
    const auto total = strategy.create_variable({.name = "total", .shape = {4}, .initial_value = {}});
    ClusterCoordinator::coordinate(strategy, [&](ClusterCoordinator& coordinator) {
      Counted before, after;
      chief.begin_step(0);
      schedule_all(coordinator, strategy, *total, before);
      coordinator.join();
      chief.end_step();
      EXPECT_THAT(counts(before), Each(1));
      chief.begin_step(1);
      EXPECT_TRUE(chief.is_lost(kSecondWorker));
      schedule_all(coordinator, strategy, *total, after);
      coordinator.join();
      chief.end_step();
      EXPECT_THAT(counts(after), Each(AllOf(Ge(1), Le(2))));
      EXPECT_LE(after.on_second, 1) << "one that was under way";
      for (int i = 0; i < kScheduled; ++i) {
        const Value value = coordinator.fetch(after.results[static_cast<std::size_t>(i)]);
        EXPECT_THAT(floats_of(chief, value.tensor()), Each(static_cast<float>(i)));
      }
      EXPECT_THAT(floats_of(chief, total->read()), Each(AllOf(Ge(2.0F * kScheduled), Le(2.0F * kScheduled + 1))));
    });
  });
}

TEST_P(LostWorkers, OnesThatComeBackGetNewDatasetsAndFunctionsAgain) {
  run({{.worker = kSecondWorker, .step = 1, .back_after_s = 0.02}}, [](Worker& chief) {
    ParameterServerStrategyV2 strategy(chief);
    const auto total = strategy.create_variable({.name = "total", .shape = {4}, .initial_value = {}});
    std::atomic<int> datasets = 0;
    ClusterCoordinator::coordinate(strategy, [&](ClusterCoordinator& coordinator) {
      const auto per_worker = coordinator.create_per_worker_dataset([&](const InputContext&) {
        ++datasets;
        return Dataset::range(100);
      });
      EXPECT_EQ(datasets, 2);
      chief.begin_step(0);
      chief.end_step();
      chief.begin_step(1);
      Counted counted;
      int rounds = 0;
      // The lost worker finds that out with a function that it is given; then it is back, some time later.
      for (; rounds < 100'000 && (datasets < 3 || counted.on_second < 2); ++rounds) {
        counted.results.clear();
        schedule_all(coordinator, strategy, *total, counted);
        coordinator.join();
      }
      chief.end_step();
      EXPECT_EQ(datasets, 3) << "that of the worker is made anew";
      EXPECT_FALSE(chief.is_lost(kSecondWorker));
      const RemoteValue next = coordinator.schedule([&]() -> Value { return per_worker.current().next().value(); });
      EXPECT_NO_THROW(coordinator.fetch(next));
    });
  });
}

TEST_P(LostWorkers, TheThirdFunctionThatFindsAServerLostEndsWithThat) {
  run({{.worker = kServer, .step = 1}}, [](Worker& chief) {
    ParameterServerStrategyV2 strategy(chief);
    const auto total = strategy.create_variable({.name = "total", .shape = {4}, .initial_value = {}});
    ClusterCoordinator::coordinate(strategy, [&](ClusterCoordinator& coordinator) {
      chief.begin_step(0);
      chief.end_step();
      chief.begin_step(1);
      std::atomic<int> begun = 0;
      const RemoteValue result = coordinator.schedule([&]() -> Value {
        ++begun;
        return strategy.run([&](const Value::Parts&) -> Value {
          Device& device = get_replica_context()->device();
          total->assign_add(filled(device, {4}, 1));
          total->read();
          for (Device* server : total->devices()) server->synchronize();
          return {};
        });
      });
      try {
        coordinator.join();
        ADD_FAILURE() << "join() did not throw";
      } catch (const UnavailableError& error) {
        EXPECT_THAT(error.what(), HasSubstr("/job:ps/task:0 was lost"));
      }
      EXPECT_EQ(begun, 3);
      EXPECT_THROW(coordinator.fetch(result), UnavailableError);
      EXPECT_NO_THROW(coordinator.join()) << "an error is thrown once";
      chief.end_step();
    });
  });
}

TEST_P(LostWorkers, OtherErrorsAreNoReasonToRunAFunctionAgain) {
  run({{.worker = kSecondWorker, .step = 1}}, [](Worker& chief) {
    ParameterServerStrategyV2 strategy(chief);
    ClusterCoordinator::coordinate(strategy, [&](ClusterCoordinator& coordinator) {
      chief.begin_step(0);
      chief.end_step();
      chief.begin_step(1);
      std::atomic<int> begun = 0;
      coordinator.schedule([&]() -> Value {
        ++begun;
        throw ValueError("not a matter of workers");
      });
      EXPECT_THROW(coordinator.join(), ValueError);
      EXPECT_EQ(begun, 1);
      chief.end_step();
    });
  });
}

// At whatever moment workers go and come, each function is run, and no run hangs.
TEST_P(LostWorkers, AtRandomMomentsEveryFunctionRuns) {
  if (!GetParam().schedule_seed) GTEST_SKIP() << "dates of machines that measure time are no moments of a program";
  std::mt19937_64 random(*GetParam().schedule_seed);
  for (int i = 0; i < 60; ++i) {
    std::vector<LostWorker> lost;
    for (int n = 1 + static_cast<int>(random() % 3); n > 0; --n) {
      const int worker = 1 + static_cast<int>(random() % 2);
      const bool comes_back = worker == 1 || random() % 2 == 0;
      lost.push_back({.worker = worker,
                      .at_s = static_cast<double>(random() % 400) * 1e-6,
                      .back_after_s = comes_back ? static_cast<double>(1 + random() % 300) * 1e-6 : kNeverBack});
    }
    int done = 0;
    run(lost, [&](Worker& chief) {
      ParameterServerStrategyV2 strategy(chief);
      const auto total = strategy.create_variable({.name = "total", .shape = {4}, .initial_value = {}});
      chief.begin_step(0);
      Counted counted;
      ClusterCoordinator::coordinate(strategy, [&](ClusterCoordinator& coordinator) {
        for (int round = 0; round < 3; ++round) {
          counted.results.clear();
          schedule_all(coordinator, strategy, *total, counted);
          coordinator.join();
          ++done;
        }
      });
      chief.end_step();
      int begun = 0;
      for (const int count : counts(counted)) begun += count;
      EXPECT_THAT(counts(counted), Each(Ge(3)));
      const std::vector<float> sums = floats_of(chief, total->read());
      EXPECT_GE(sums.front(), 3.0F * kScheduled);
      EXPECT_LE(sums.front(), static_cast<float>(begun));
    });
    EXPECT_EQ(done, 3) << i;
  }
}

}  // namespace
}  // namespace tandem
