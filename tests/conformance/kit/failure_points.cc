#include "tests/conformance/kit/failure_points.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>

#include "engine/faults/faults.h"
#include "tests/conformance/kit/judged_run.h"
#include "tests/conformance/kit/random_calls.h"

namespace tandem {
namespace {

constexpr int kCalls = 2;  // of a program, beside the reads of its variables at its end

// What a function throws on purpose.
class BrokenFunction final : public std::exception {
 public:
  const char* what() const noexcept override { return "a function of the kit throws"; }
};

// What the workers of a run saw, and how it ended.
struct SeenRun {
  std::map<int, std::vector<SeenCall>> seen{};  // by worker
  std::map<int, std::string> errors{};          // of the programs that ended with one
  std::exception_ptr error{};                   // of the run; null: it came to its end
  Timeline timeline{};

  std::string error_text() const {
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& found) {
      return found.what();
    }
  }
  template <typename Expected>
  bool ended_with() const {
    try {
      std::rethrow_exception(error);
    } catch (const Expected&) {
      return true;
    } catch (...) {
      return false;
    }
  }
};

// A run of the program of one seed, each time with other faults or another function that throws.
class Repeated {
 public:
  Repeated(const StrategyUnderTest& tested, int seed) : tested_(tested), seed_(seed) {
    if (tested_.world.schedule_seed) tested_.world.schedule_seed = static_cast<std::uint64_t>(seed);
    undisturbed_ = run({});
    if (undisturbed_.error) fail("no failure", "ended with an error: " + undisturbed_.error_text());
  }

  bool is_usable() const { return !undisturbed_.error; }
  const StrategyUnderTest& tested() const { return tested_; }
  int runs() const { return runs_; }
  void note_run() const { ++runs_; }  // of the program, other than by run()
  const SeenRun& undisturbed() const { return undisturbed_; }
  std::string name_of(int worker) const {
    return worker < tested_.workers ? WorkerSpec{.job = "worker", .task = worker}.text()
                                    : WorkerSpec{.job = "ps", .task = worker - tested_.workers}.text();
  }

  // `hooks`: of this worker.
  SeenRun run(const Faults& faults, int worker = 0, const CallHooks& hooks = {}) const {
    note_run();
    SeenRun run;
    std::mutex mutex;  // guards it from the workers of real engines
    const auto note = [&](const Worker& who, std::vector<SeenCall>& seen, const char* error) {
      const std::lock_guard lock(mutex);
      run.seen[who.index()] = std::move(seen);
      if (error != nullptr) run.errors[who.index()] = error;
    };
    const CallHooks none;
    try {
      run.timeline = run_strategy(
          tested_, tested_.world,
          [&](Worker& who, Strategy& strategy) {
            std::vector<SeenCall> seen;
            try {
              who.begin_step(0);
              RandomCalls(who, strategy, static_cast<std::uint64_t>(seed_), who.index() == worker ? hooks : none, seen)
                  .make(kCalls);
              who.end_step();
              note(who, seen, nullptr);
            } catch (const std::exception& error) {
              note(who, seen, error.what());
              throw;
            } catch (...) {
              note(who, seen, nullptr);
              throw;
            }
          },
          std::make_shared<const Faults>(faults));
    } catch (const std::exception&) {
      run.error = std::current_exception();
    }
    return run;
  }

  void fail(const std::string& failure, const std::string& problem) const {
    const JudgedCall call{
        fmt::format("random_calls(seed {}, {} calls) with {}", seed_, kCalls, failure),
        "lets no failure hang the run, change a value, or reach the caller as anything else than it is"};
    ADD_FAILURE() << message_of(call, problem, "", testing::PrintToString(tested_)) << "\nTo try only this program: "
                  << fmt::format("TANDEM_FAILURE_SEED={} TANDEM_FAILURE_SEEDS=1", seed_);
  }

  // "" where a worker saw what it saw in the undisturbed run, up to some call. The names of variables that are created
  // again may differ.
  std::string difference_until_the_end(const std::vector<SeenCall>& found, int worker) const {
    const std::vector<SeenCall>& expected = undisturbed_.seen.at(worker);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const SeenCall& other = i < expected.size() ? expected[i] : SeenCall{.call = "no call"};
      const bool is_last = i + 1 == found.size();
      const Numbers& values = found[i].values;
      const bool agree = is_last ? values.size() <= other.values.size() &&
                                       std::equal(values.begin(), values.end(), other.values.begin())
                                 : values == other.values;
      if (agree && i < expected.size()) continue;
      return fmt::format("worker {} saw {} in {}, must see {} as in the undisturbed run", worker, numbers_text(values),
                         found[i].call, numbers_text(other.values));
    }
    return "";
  }
  std::string difference_until_the_end(const SeenRun& run) const {
    for (const auto& [worker, seen] : run.seen) {
      if (std::string difference = difference_until_the_end(seen, worker); !difference.empty()) return difference;
    }
    return "";
  }
  // "" where the whole run was as the undisturbed one.
  std::string difference(const SeenRun& run) const {
    if (run.error) return "ended with an error: " + run.error_text();
    for (const auto& [worker, expected] : undisturbed_.seen) {
      const auto found = run.seen.find(worker);
      if (found == run.seen.end()) return fmt::format("worker {} saw nothing", worker);
      if (std::string difference = difference_to_the_end(found->second, worker); !difference.empty()) return difference;
    }
    return "";
  }
  std::string difference_to_the_end(const std::vector<SeenCall>& found, int worker) const {
    const std::vector<SeenCall>& expected = undisturbed_.seen.at(worker);
    const bool has_all = found.size() == expected.size() && found.back().values.size() == expected.back().values.size();
    const std::string difference = difference_until_the_end(found, worker);
    return difference.empty() && !has_all ? "saw less than in the undisturbed run" : difference;
  }

 private:
  StrategyUnderTest tested_;
  int seed_;
  mutable int runs_ = 0;
  SeenRun undisturbed_{};
};

// Calls `judge` with the program of each seed, until the test fails.
void for_each_seed(const StrategyUnderTest& tested, const FailurePoints& points,
                   const std::function<void(const Repeated&)>& judge) {
  int runs = 0;
  for (int seed = points.first_seed; seed < points.first_seed + points.seeds; ++seed) {
    if (testing::Test::HasFailure()) return;
    const Repeated repeated(tested, seed);
    if (repeated.is_usable()) judge(repeated);
    runs += repeated.runs();
  }
  testing::Test::RecordProperty("runs", runs);
}

std::string problem_of_loss(const Repeated& repeated, const SeenRun& run, const std::string& lost) {
  if (!run.ended_with<UnavailableError>() || run.error_text().find(lost) == std::string::npos) {
    return fmt::format("ended with '{}', must end with the UnavailableError that says '{}'", run.error_text(), lost);
  }
  for (const auto& [worker, error] : run.errors) {
    if (error != run.error_text()) return fmt::format("worker {} got another error: {}", worker, error);
  }
  return repeated.difference_until_the_end(run);
}

// Loses the worker before each of its calls, until there are no more.
void lose_at_each_call(const Repeated& repeated, int worker, int stride) {
  for (std::int64_t call = 0;; call += stride) {
    const SeenRun run = repeated.run({.lost_workers = {{.worker = worker, .call = call}}});
    const std::string lost = fmt::format("{} was lost before call {} ", repeated.name_of(worker), call);
    std::string problem = run.error ? problem_of_loss(repeated, run, lost) : repeated.difference(run);
    // One server in two may be used by no variable.
    if (!run.error && call == 0 && worker < repeated.tested().workers) problem = "went on without the worker";
    if (!problem.empty())
      return repeated.fail(fmt::format("{} lost before call {}", repeated.name_of(worker), call), problem);
    if (!run.error) return;
  }
}

std::string differing_components(Worker& worker, const RandomCalls& calls) {
  for (const auto& variable : calls.mirrored()) {
    const ByReplica components = components_of(worker, *variable);
    for (const Numbers& component : components) {
      if (component == components.front()) continue;
      return fmt::format("the components of {} differ: {} and {}", variable->text(), numbers_text(components.front()),
                         numbers_text(component));
    }
  }
  return "";
}

// The n-th time that a function gets to one of its points, it throws.
class ThrowsAt {
 public:
  explicit ThrowsAt(std::int64_t point) : point_(point) {}
  CallHooks hooks() {
    return {.in_function = [this] {
      if (count_.fetch_add(1) == point_) throw BrokenFunction();
    }};
  }
  bool has_thrown() const { return count_.load() > point_; }

 private:
  const std::int64_t point_;
  std::atomic<std::int64_t> count_{0};
};

// All in one run, with one strategy.
void throw_at_each_point(const Repeated& repeated, int seed, int stride) {
  std::string problem;
  std::int64_t point = 0;
  const auto run_to = [&](Worker& worker, Strategy& strategy, ThrowsAt& throwing) {
    const CallHooks hooks = throwing.hooks();
    std::vector<SeenCall> seen;
    RandomCalls calls(worker, strategy, static_cast<std::uint64_t>(seed), hooks, seen);
    bool has_come = false;
    try {
      calls.make(kCalls);
    } catch (const BrokenFunction&) {
      has_come = true;
    }
    problem = differing_components(worker, calls);
    if (has_come != throwing.has_thrown()) {
      problem = "the exception of the function did not reach the caller";
    } else if (problem.empty()) {
      problem = has_come ? repeated.difference_until_the_end(seen, worker.index())
                         : repeated.difference_to_the_end(seen, worker.index());
    }
  };
  try {
    run_strategy(repeated.tested(), repeated.tested().world, [&](Worker& worker, Strategy& strategy) {
      for (;; point += stride) {
        repeated.note_run();
        ThrowsAt throwing(point);
        run_to(worker, strategy, throwing);
        if (!problem.empty() || !throwing.has_thrown()) return;
      }
    });
  } catch (const std::exception& error) {
    problem = fmt::format("ended with an error: {}", error.what());
  }
  if (!problem.empty()) repeated.fail(fmt::format("an exception at point {} of its functions", point), problem);
}

void throw_at_each_point_of(const Repeated& repeated, int worker, int stride) {
  for (std::int64_t point = 0;; point += stride) {
    ThrowsAt throwing(point);
    const SeenRun run = repeated.run({}, worker, throwing.hooks());
    std::string problem = run.error ? repeated.difference_until_the_end(run) : repeated.difference(run);
    if (throwing.has_thrown() && !(run.error && run.ended_with<BrokenFunction>())) {
      problem = run.error ? "ended with another error: " + run.error_text() : "the exception did not end the run";
    }
    if (!problem.empty()) {
      return repeated.fail(fmt::format("an exception at point {} of the functions of worker {}", point, worker),
                           problem);
    }
    if (!throwing.has_thrown()) return;
  }
}

void expect_no_change(const Repeated& repeated, const Faults& faults, const std::string& failure) {
  const std::string problem = repeated.difference(repeated.run(faults));
  if (!problem.empty()) repeated.fail(failure, problem);
}

// Each op by itself takes ten times as long: all that begins on its device in its place.
void slow_each_op_down(const Repeated& repeated, int stride) {
  const Timeline& timeline = repeated.undisturbed().timeline;
  Nanoseconds begin = std::numeric_limits<Nanoseconds>::max();
  for (const Record& record : timeline.records) {
    if (record.kind == RecordKind::step) begin = std::min(begin, record.start_ns);
  }
  int op = 0;
  for (const Record& record : timeline.records) {
    if (record.kind != RecordKind::op || record.start_ns < begin || op++ % stride != 0) continue;
    const std::string& name = timeline.devices[static_cast<std::size_t>(record.device)].name;
    const std::optional<DeviceId> device = DeviceId::parse(name, {});
    SlowDevices slow{.worker = record.worker, .factor = 10};
    if (device && device->type == repeated.tested().world.compute_devices) slow.device = device->index;
    const auto seconds = [&](Nanoseconds date) { return static_cast<double>(date - begin) * 1e-9; };
    slow.when = {.from_s = seconds(record.start_ns), .to_s = seconds(record.end_ns + 1)};
    expect_no_change(repeated, {.slow_devices = {slow}}, fmt::format("{} slow from {} ns on", name, record.start_ns));
    if (testing::Test::HasFailure()) return;
  }
}

void vary_times(const Repeated& repeated, std::uint64_t seed) {
  const Faults faults{.slow_links = {{.links = {0}, .factor = 7}},
                      .jitter = {{.on = Jitter::On::compute, .variation = 1, .seed = seed},
                                 {.on = Jitter::On::network, .variation = 1, .seed = seed},
                                 {.on = Jitter::On::input, .variation = 1, .seed = seed}}};
  expect_no_change(repeated, faults, "a slow link, and times that vary");
}

void slow_each_device_down(const Repeated& repeated) {
  const StrategyUnderTest& tested = repeated.tested();
  for (int worker = 0; worker < tested.workers; ++worker) {
    for (int device = 0; device < tested.local_replicas(); ++device) {
      expect_no_change(repeated, {.slow_devices = {{.worker = worker, .device = device, .factor = 4}}},
                       fmt::format("device {} of worker {} slow", device, worker));
    }
  }
}

}  // namespace

FailurePoints FailurePoints::asked(int few) {
  const auto number = [](const char* name, int otherwise) {
    const char* const text = std::getenv(name);
    return text == nullptr ? otherwise : std::atoi(text);
  };
  const int seeds = number("TANDEM_FAILURE_SEEDS", 0);
  return {.first_seed = number("TANDEM_FAILURE_SEED", 1), .seeds = std::max(1, seeds), .stride = seeds > 0 ? 1 : few};
}

void expect_lost_workers_to_end_runs(const StrategyUnderTest& tested) {
  const FailurePoints points = FailurePoints::asked(61);
  for_each_seed(tested, points, [&](const Repeated& repeated) {
    for (int worker = 0; worker < tested.workers + tested.servers; ++worker) {
      lose_at_each_call(repeated, worker, points.stride);
    }
  });
}

void expect_exceptions_to_reach_callers(const StrategyUnderTest& tested) {
  const FailurePoints points = FailurePoints::asked(tested.workers > 1 ? 5 : 1);
  int seed = points.first_seed;
  for_each_seed(tested, points, [&](const Repeated& repeated) {
    if (tested.workers == 1) throw_at_each_point(repeated, seed, points.stride);
    for (int worker = 0; tested.workers > 1 && worker < tested.workers; ++worker) {
      throw_at_each_point_of(repeated, worker, points.stride);
    }
    ++seed;
  });
}

void expect_slow_devices_to_change_no_value(const StrategyUnderTest& tested) {
  const FailurePoints points = FailurePoints::asked(61);
  std::uint64_t seed = 0;
  for_each_seed(tested, points, [&](const Repeated& repeated) {
    if (engine_info(tested.world.engine).faults != FaultSupport::all) return slow_each_device_down(repeated);
    slow_each_op_down(repeated, points.stride);
    vary_times(repeated, ++seed);
  });
}

}  // namespace tandem
