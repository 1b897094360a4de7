// A coordinator's job with a failure at each point: what it schedules runs at least once, and no run hangs.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <atomic>

#include "engine/faults/faults.h"
#include "strategies/base/errors.h"
#include "strategies/cross_device/host_values.h"
#include "strategies/servers/cluster_coordinator.h"
#include "strategies/strategy/replica_context.h"
#include "tests/conformance/kit/failure_points.h"
#include "tests/conformance/kit/judge.h"

namespace tandem {
namespace {

constexpr int kWorkersOfJob = 2, kServerOfJob = 3;  // behind the chief
constexpr std::size_t kMostFunctions = 6;
constexpr double kNeverAgain = std::numeric_limits<double>::infinity();

// What the kit's functions throw on purpose.
class BrokenScheduled final : public std::exception {
 public:
  const char* what() const noexcept override { return "a scheduled function throws"; }
};

// A job: each function adds 1 to each element of a variable.
struct ScheduledJob {
  std::size_t functions = 3;
  int replicas = 1;
  std::optional<std::size_t> broken{};  // the function that throws

  explicit ScheduledJob(int seed)
      : functions(3 + static_cast<std::size_t>(seed) % (kMostFunctions - 2)), replicas(1 + seed / 4 % 2) {}
};

struct ScheduledRun {
  std::vector<std::atomic<int>> begun = std::vector<std::atomic<int>>(kMostFunctions);  // how often, by function
  std::vector<double> results{};
  Numbers total{};
  int losses = 0;                 // of workers
  bool has_thrown = false;        // join() has thrown BrokenScheduled
  bool has_thrown_twice = false;  // a second join() has thrown as well
  std::string unavailable{};      // the UnavailableError of join() or of the run
  std::string error{};            // another one
};

class CoordinatorFailures : public testing::TestWithParam<World> {
 protected:
  void SetUp() override {
    if (const std::string reason = reason_to_skip(GetParam()); !reason.empty()) GTEST_SKIP() << reason;
    if (engine_info(GetParam().engine).faults == FaultSupport::none) GTEST_SKIP() << "this engine loses no workers";
    if (!open_world(GetParam(), 2, 1)->capabilities().shared_objects) GTEST_SKIP() << "several processes";
  }

  void TearDown() override { RecordProperty("runs", runs_); }

  // The seed of the schedule, where the world has one, is that of the job.
  void run(ScheduledRun& run, const ScheduledJob& job, int seed, std::vector<LostWorker> lost) {
    World world = GetParam();
    if (world.schedule_seed) world.schedule_seed = static_cast<std::uint64_t>(seed);
    EngineOptions options = world_options(world, 4, job.replicas);
    const char* const jobs[] = {"chief", "worker", "worker", "ps"};
    const int tasks[] = {0, 0, 1, 0};
    for (std::size_t i = 0; i < options.workers.size(); ++i) {
      options.workers[i].job = jobs[i];
      options.workers[i].task = tasks[i];
    }
    options.workers[0].device_count = options.workers[kServerOfJob].device_count = 0;
    for (LostWorker& one : lost) one.ends_run = false;
    options.faults = std::make_shared<const Faults>(Faults{.lost_workers = std::move(lost)});
    ++runs_;
    try {
      open_engine(world.engine, std::move(options))->run([&](Worker& worker) {
        if (worker.index() == 0) run_as_chief(run, job, worker);
      });
    } catch (const UnavailableError& error) {
      run.unavailable = error.what();
    } catch (const std::exception& error) {
      run.error = error.what();
    }
  }

 private:
  int runs_ = 0;

  static void run_as_chief(ScheduledRun& run, const ScheduledJob& job, Worker& chief) {
    ParameterServerStrategyV2 strategy(chief);
    const auto total =
        strategy.create_variable({.name = "total", .shape = {4}, .aggregation = VariableAggregation::sum});
    ClusterCoordinator::coordinate(strategy, [&](ClusterCoordinator& coordinator) {
      std::vector<RemoteValue> results;
      try {
        for (std::size_t i = 0; i < job.functions; ++i) {
          results.push_back(coordinator.schedule([&, i] { return function(run, job, strategy, *total, i); }));
        }
        coordinator.join();
      } catch (const BrokenScheduled&) {
        run.has_thrown = true;
      } catch (const UnavailableError& error) {
        run.unavailable = error.what();
      }
      try {
        coordinator.join();
      } catch (const std::exception&) {
        run.has_thrown_twice = true;
      }
      if (run.has_thrown || !run.unavailable.empty()) return;
      for (const RemoteValue& result : results) run.results.push_back(coordinator.fetch(result).number());
    });
    for (int worker = 1; worker <= kWorkersOfJob; ++worker) run.losses += chief.losses(worker);
    if (run.unavailable.empty()) run.total = host_values(chief, total->read());
  }

  static Value function(ScheduledRun& run, const ScheduledJob& job, ParameterServerStrategyV2& strategy,
                        Variable& total, std::size_t i) {
    ++run.begun[i];
    if (i == job.broken) throw BrokenScheduled();
    strategy.run([&](const Value::Parts&) {
      Device& device = get_replica_context()->device();
      Tensor share = device.allocate(DType::f32, {4});
      device.compute_stream().launch(op::fill(share, 1.0 / job.replicas));
      total.assign_add(Value(share));
      return Value();
    });
    return static_cast<double>(i);
  }
};
INSTANTIATE_TEST_SUITE_P(Worlds, CoordinatorFailures, testing::ValuesIn(built_worlds()), name_of_world);

// "" where every function has run, each as often as it was begun on a worker that was lost.
std::string problem_of_functions(const ScheduledRun& run, const ScheduledJob& job) {
  int begun = 0;
  for (std::size_t i = 0; i < job.functions; ++i) {
    if (run.begun[i] < 1 || run.begun[i] > 1 + run.losses) {
      return fmt::format("function {} was begun {} times, and {} workers were lost", i, run.begun[i].load(),
                         run.losses);
    }
    begun += run.begun[i];
    if (run.results.at(i) != static_cast<double>(i)) return fmt::format("function {} returned {}", i, run.results[i]);
  }
  for (const double element : run.total) {
    if (element != run.total.front()) return "half of an update was applied: " + numbers_text(run.total);
  }
  const double total = run.total.front();
  if (total >= static_cast<double>(job.functions) && total <= begun) return "";
  return fmt::format("{} updates were applied by {} functions that were begun {} times", total, job.functions, begun);
}

void report_problem(const std::string& problem, const std::vector<LostWorker>& lost, int seed) {
  std::string moments;
  for (const LostWorker& one : lost) {
    moments += fmt::format("; worker {} lost before call {}, back after {} s", one.worker, *one.call, one.back_after_s);
  }
  ADD_FAILURE() << problem << moments
                << "\nTo try only this job: " << fmt::format("TANDEM_FAILURE_SEED={} TANDEM_FAILURE_SEEDS=1", seed);
}

TEST_P(CoordinatorFailures, FunctionsOfLostWorkersRunAtLeastOnceAtEveryCall) {
  const FailurePoints points = FailurePoints::asked(3);
  for (int seed = points.first_seed; seed < points.first_seed + points.seeds && !HasFailure(); ++seed) {
    const ScheduledJob job(seed);
    for (const int worker : {1, 2}) {
      bool is_over = false;
      for (std::int64_t call = seed % points.stride; !is_over && !HasFailure(); call += points.stride) {
        const double back_after_s = call % 3 == 0 ? kNeverAgain : static_cast<double>(call % 7 + 1) * 10e-6;
        std::vector<LostWorker> lost = {{.worker = worker, .call = call, .back_after_s = back_after_s}};
        // The other one comes back in any case.
        if (call % 2 == 1) lost.push_back({.worker = 3 - worker, .call = call / 2, .back_after_s = 30e-6});
        ScheduledRun found;
        run(found, job, seed, lost);
        is_over = found.losses == 0;
        std::string problem = found.error + found.unavailable;
        if (problem.empty()) problem = problem_of_functions(found, job);
        if (!problem.empty()) report_problem(problem, lost, seed);
        if (is_over && call < points.stride) report_problem("no worker was lost", lost, seed);
      }
    }
  }
}

// The run goes on until the third function finds it lost.
TEST_P(CoordinatorFailures, LostServersEndTheJobAtEveryCall) {
  const FailurePoints points = FailurePoints::asked(3);
  for (int seed = points.first_seed; seed < points.first_seed + points.seeds && !HasFailure(); ++seed) {
    const ScheduledJob job(seed);
    bool is_over = false;
    for (std::int64_t call = seed % points.stride; !is_over && !HasFailure(); call += points.stride) {
      const std::vector<LostWorker> lost = {{.worker = kServerOfJob, .call = call}};
      ScheduledRun found;
      run(found, job, seed, lost);
      std::string problem = found.error;
      is_over = found.unavailable.empty();
      if (is_over && problem.empty()) problem = problem_of_functions(found, job);
      const std::string said = fmt::format("/job:ps/task:0 was lost before call {} of its devices", call);
      if (!is_over && found.unavailable.find(said) == std::string::npos) problem += found.unavailable;
      if (found.has_thrown_twice) problem += "an error was thrown twice";
      for (const auto& begun : found.begun) {
        if (begun > 3) problem += fmt::format("a function was begun {} times", begun.load());
      }
      if (!problem.empty()) report_problem(problem, lost, seed);
      if (is_over && call < points.stride) report_problem("the server was not lost", lost, seed);
    }
  }
}

TEST_P(CoordinatorFailures, ExceptionsOfFunctionsAreThrownOnceWhoeverIsLost) {
  FailurePoints points = FailurePoints::asked(5);
  if (points.stride > 1) points.first_seed = 11;  // where schedule() threw while another function lost its worker
  for (int seed = points.first_seed; seed < points.first_seed + points.seeds && !HasFailure(); ++seed) {
    ScheduledJob job(seed);
    for (job.broken = 0; *job.broken < job.functions; ++*job.broken) {
      bool is_over = false;
      for (std::int64_t call = seed % points.stride; !is_over && !HasFailure(); call += points.stride) {
        const std::vector<LostWorker> lost = {{.worker = 1, .call = call}};
        ScheduledRun found;
        run(found, job, seed, lost);
        is_over = found.losses == 0;
        std::string problem = found.error + found.unavailable;
        if (!found.has_thrown) problem += "join() did not throw what the function threw";
        if (found.has_thrown_twice) problem += "join() has thrown twice";
        if (found.begun[*job.broken] != 1) {
          problem += fmt::format("the function that throws was begun {} times", found.begun[*job.broken].load());
        }
        if (!problem.empty()) report_problem(problem, lost, seed);
      }
    }
  }
}

}  // namespace
}  // namespace tandem
