// A worker of a synchronous strategy that is lost ends the run for all, in every world that loses workers: each worker
// finds it while it waits, and gets the same error, which names the lost one.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <array>
#include <mutex>

#include "engine/faults/faults.h"
#include "strategies/base/errors.h"
#include "strategies/types/multi_worker_mirrored.h"
#include "tests/conformance/strategy_testing.h"

namespace tandem {
namespace {

constexpr int kPeers = 3, kStepsBeforeTheEnd = 200;

class LostPeer : public InEveryWorld {
 protected:
  void SetUp() override {
    InEveryWorld::SetUp();
    if (IsSkipped()) return;
    if (engine_info(GetParam().engine).faults == FaultSupport::none) GTEST_SKIP() << "this engine loses no workers";
    if (!open_world(GetParam(), 2, 1)->capabilities().shared_objects) {
      GTEST_SKIP() << "a process that is killed ends this test: tests/mpi";
    }
  }

  struct End {
    std::array<std::string, kPeers> errors{};  // of each worker's program
    std::array<int, kPeers> steps{};           // that it has ended
    std::string of_run{};
  };
  End train(const LostWorker& lost) const {
    EngineOptions options = world_options(GetParam(), kPeers, 1);
    options.faults = std::make_shared<const Faults>(Faults{.lost_workers = {lost}});
    End end;
    std::mutex mutex;
    try {
      open_engine(GetParam().engine, std::move(options))->run([&](Worker& worker) {
        const auto place = static_cast<std::size_t>(worker.index());
        int steps = 0;
        const auto note = [&](const std::string& text) {
          const std::lock_guard lock(mutex);
          end.errors.at(place) = text;
          end.steps.at(place) = steps;
        };
        try {
          MultiWorkerMirroredStrategy strategy(worker);
          const Scope scope = strategy.scope();
          const auto weight =
              create_variable({.name = "weight", .shape = {4}, .aggregation = VariableAggregation::sum});
          for (; steps < kStepsBeforeTheEnd; ++steps) {
            worker.begin_step(steps);
            strategy.run([&](const Value::Parts&) -> Value {
              weight->assign_add(filled(get_replica_context()->device(), {4}, 1));
              return {};
            });
            worker.end_step();
          }
          note("none");
        } catch (const UnavailableError& error) {
          note(error.what());
          throw;
        } catch (const std::exception& error) {
          note(std::string("another kind of error: ") + error.what());
          throw;
        }
      });
      end.of_run = "none";
    } catch (const UnavailableError& error) {
      end.of_run = error.what();
    }
    return end;
  }
};
INSTANTIATE_TEST_SUITE_P(Worlds, LostPeer, testing::ValuesIn(built_worlds()), name_of_world);

TEST_P(LostPeer, EndsTheRunOfAllWithTheSameError) {
  for (int lost = 0; lost < kPeers; ++lost) {
    for (const int step : {0, 1, 7}) {
      SCOPED_TRACE(fmt::format("worker {} before step {}", lost, step));
      const End end = train({.worker = lost, .step = step});
      const std::string expected =
          fmt::format("/job:worker/task:{} was lost before step {}, as the faults of this run say", lost, step);
      EXPECT_EQ(end.of_run, expected);
      for (int worker = 0; worker < kPeers; ++worker) {
        const auto place = static_cast<std::size_t>(worker);
        EXPECT_EQ(end.errors.at(place), expected) << "worker " << worker;
        EXPECT_LE(end.steps.at(place), step) << "worker " << worker << " takes no step without the lost one";
      }
    }
  }
}

}  // namespace
}  // namespace tandem
