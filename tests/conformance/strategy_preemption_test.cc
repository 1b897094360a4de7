// Workers that are to be terminated save a checkpoint after the same step, in every world, and the next run goes on.
#include <gmock/gmock.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <mutex>

#include "strategies/cross_device/host_values.h"
#include "strategies/training/preemption_checkpoint.h"
#include "strategies/types/multi_worker_mirrored.h"
#include "tests/conformance/strategy_testing.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using testing::Each;

constexpr int kWorkersToEnd = 3, kStepsInAll = 12;

class Preemption : public InEveryWorld {
 protected:
  void SetUp() override {
    InEveryWorld::SetUp();
    const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
    std::string name = std::string("tandem-preempted-") + test.name() + "-" + std::to_string(::getppid());
    std::replace(name.begin(), name.end(), '/', '-');
    folder_ = fs::temp_directory_path() / name;
  }
  void TearDown() override {
    std::error_code removed_by_another_rank;
    fs::remove_all(folder_, removed_by_another_rank);
  }

  // What the workers of this process have done.
  struct Ended {
    std::vector<int> calls{}, codes{}, checkpoints{};
    std::vector<double> weights{};

    int calls_of_first() const { return calls.empty() ? 0 : calls.front(); }
    bool is_of_nobody() const { return calls.empty(); }  // a process may have no worker
  };

  // Trains to the last step, from the last checkpoint, unless workers are terminated before. `config_of` makes that of
  // a worker, given its steps so far.
  using ConfigOf = std::function<TerminationConfig(int worker, const int& steps)>;
  Ended train(const ConfigOf& config_of, const std::function<void(int worker, int step)>& in_step = {}) const {
    Ended ended;
    std::mutex mutex;
    open_world(GetParam(), kWorkersToEnd, 1)->run([&](Worker& worker) {
      MultiWorkerMirroredStrategy strategy(worker);
      const Scope scope = strategy.scope();
      const auto weight = create_variable({.name = "weight", .shape = {1}});
      const auto step = create_variable({.name = "step", .trainable = false});
      Checkpoint checkpoint(worker);
      checkpoint.add("weight", weight);
      checkpoint.add("step", step);
      CheckpointManager manager(checkpoint, folder_.string());
      manager.restore_or_initialize();
      int steps = static_cast<int>(host_number(worker, step->read()));
      PreemptionCheckpointHandler preemption(worker, manager, config_of(worker.index(), steps));
      while (steps < kStepsInAll && preemption.run([&] {
        if (in_step) in_step(worker.index(), steps);
        strategy.run([&](const Value::Parts&) -> Value {
          weight->assign_add(Value(1.0 + steps));
          return {};
        });
        step->assign_add(Value(1.0));
        EXPECT_EQ(strategy.reduce(ReduceOp::sum, Value(1.0)).number(), kWorkersToEnd) << "they take steps together";
      })) {
        ++steps;
      }
      const double last = host_number(worker, weight->read());
      const std::lock_guard lock(mutex);
      ended.calls.push_back(preemption.total_run_calls());
      ended.codes.push_back(preemption.is_preempted() ? preemption.exit_code() : 0);
      ended.checkpoints.push_back(static_cast<int>(manager.checkpoints().size()));
      ended.weights.push_back(last);
    });
    return ended;
  }

  fs::path folder_;
};
INSTANTIATE_TEST_SUITE_P(Worlds, Preemption, testing::ValuesIn(built_worlds()), name_of_world);

TerminationConfig terminated_from(int step, const int& steps) {
  return {.termination_watcher = [step, &steps] { return steps >= step; }};
}

TEST_P(Preemption, AllSaveAfterTheSameStepAndGoOnFromThere) {
  const Ended undisturbed = train([](int, const int& steps) { return terminated_from(1000, steps); });
  EXPECT_THAT(undisturbed.calls, Each(kStepsInAll));
  EXPECT_THAT(undisturbed.codes, Each(0));
  EXPECT_THAT(undisturbed.checkpoints, Each(0));

  const Ended first =
      train([](int worker, const int& steps) { return terminated_from(worker == 1 ? 5 : 1000, steps); });
  EXPECT_THAT(first.codes, Each(143));
  EXPECT_THAT(first.calls, Each(first.calls_of_first()));
  EXPECT_TRUE(first.is_of_nobody() || (first.calls_of_first() >= 5 && first.calls_of_first() <= 7));
  const Ended second = train([](int, const int& steps) { return terminated_from(1000, steps); });
  EXPECT_THAT(second.calls, Each(kStepsInAll - first.calls_of_first()));
  EXPECT_EQ(second.weights, undisturbed.weights);
}

TEST_P(Preemption, SeveralNoticesAreOneCheckpoint) {
  const Ended ended = train([](int worker, const int& steps) {
    TerminationConfig config = terminated_from(3 + worker % 2, steps);
    config.exit_code = 42;
    return config;
  });
  EXPECT_THAT(ended.codes, Each(42));
  EXPECT_THAT(ended.calls, Each(ended.calls_of_first()));
  EXPECT_THAT(ended.checkpoints, Each(1));
}

TEST_P(Preemption, InAGracePeriodTrainingGoesOnUntilASecondCheckpoint) {
  std::atomic<int> exits = 0;
  const Ended ended = train([&](int worker, const int& steps) {
    TerminationConfig config = terminated_from(worker == 2 ? 2 : 1000, steps);
    config.grace_period_s = 1e-9;
    config.exit = [&] { ++exits; };
    return config;
  });
  EXPECT_THAT(ended.codes, Each(143));
  EXPECT_EQ(exits, std::ssize(ended.calls));
  EXPECT_THAT(ended.calls, Each(ended.calls_of_first()));
  EXPECT_TRUE(ended.is_of_nobody() || ended.calls_of_first() >= 2);
  EXPECT_THAT(ended.checkpoints, Each(2));
}

TEST_P(Preemption, SigtermIsTheNoticeOfAProcess) {
  if (GetParam().engine != "cpu") GTEST_SKIP() << "one process that the operating system ends says it for all";
  const auto raise_in_a_step = [](int worker, int step) {
    if (worker == 0 && step == 3) std::raise(SIGTERM);
  };
  EXPECT_EXIT(std::_Exit(train([](int, const int&) { return TerminationConfig{}; }, raise_in_a_step).codes[0]),
              testing::ExitedWithCode(143), "");
}

}  // namespace
}  // namespace tandem
