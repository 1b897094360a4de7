#include "scenarios/run/course_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "scenarios/estimates/device_memory.h"
#include "scenarios/faults/course_model.h"
#include "scenarios/faults/engine_faults.h"
#include "scenarios/faults/fault_settings.h"
#include "scenarios/faults/recovery_policy.h"
#include "scenarios/reading/scenario_rules.h"
#include "topologies/base/strict_yaml.h"

namespace tandem {
namespace {

constexpr int kSampleSteps = 8;           // after the warm-up, of each state
constexpr int kMostStepsOneByOne = 2000;  // of a job with faults, in a simulation

// Returns the scenario without faults, but for times that vary, and with few steps.
Scenario sample_of(const Scenario& scenario) {
  Scenario sample = scenario;
  auto faults = std::make_shared<FaultSettings>();
  faults->jitter = scenario.faults->jitter;
  sample.faults = faults->jitter.empty() ? nullptr : std::move(faults);
  sample.steps = std::min(scenario.steps, scenario.warmup_steps + kSampleSteps);
  // At least one evaluation is seen, if the job has any.
  if (sample.evaluation && sample.evaluation->every_steps <= scenario.steps)
    sample.evaluation->every_steps = std::min<std::int64_t>(sample.evaluation->every_steps, sample.steps);
  return sample;
}

// Returns the sample on so many fewer workers, each with its share of the batch; nothing where that cannot be.
std::optional<Scenario> with_fewer_workers(const Scenario& sample, int lost) {
  const int workers = training_workers(sample), left = workers - lost;
  if (left < 1) return std::nullopt;
  Scenario fewer = sample;
  fewer.devices.workers = left;
  fewer.devices.ps = parameter_servers(sample);
  const bool is_batch_of_training = sample.evaluation && sample.evaluation->batch == sample.workload.batch;
  fewer.workload.batch = std::max(1, static_cast<int>(std::int64_t{sample.workload.batch} * left / workers));
  // What divides a model evaluates batches of training, and needs more of them for as many examples.
  if (is_batch_of_training && strategy_info(sample.strategy.name).division) {
    const std::int64_t examples = fewer.evaluation->batch * fewer.evaluation->passes;
    fewer.evaluation->batch = fewer.workload.batch;
    fewer.evaluation->passes = static_cast<int>((examples + fewer.workload.batch - 1) / fewer.workload.batch);
  }
  MeshSettings& mesh = fewer.strategy.mesh;
  if (strategy_info(sample.strategy.name).has_free_mesh()) {
    if (std::int64_t{mesh.data} * left % workers != 0) return std::nullopt;
    mesh.data = static_cast<int>(std::int64_t{mesh.data} * left / workers);
  }
  Diagnostics problems;
  check_rules(fewer, problems);
  return problems.empty() ? std::optional(std::move(fewer)) : std::nullopt;
}

// Seconds for the examples of one step of the whole job.
double seconds_of_step(const Report& report, double units) {
  const double throughput = report.throughput();
  return throughput > 0 ? units / throughput : std::numeric_limits<double>::infinity();
}

// Seconds for which training waits for one evaluation; 0 where there was none.
double seconds_of_evaluation(const Report& report) {
  const auto& evaluations = report.evaluations;
  if (!evaluations || evaluations->due == 0) return 0;
  return static_cast<double>(evaluations->waited) * 1e-9 / static_cast<double>(evaluations->due);
}

// What is done in a state of the cluster takes so long.
struct TimesOfState {
  double step_s = 0, evaluation_s = 0;
};

class StepTimes {
 public:
  StepTimes(const Scenario& scenario, const Scenario& sample, const Report& undisturbed, const RunScenario& run)
      : scenario_(scenario), sample_(sample), undisturbed_(undisturbed), run_(run), alike_(job_of(sample).alike) {}

  const TimesOfState& operator()(const ClusterState& state) {
    const auto [known, is_new] = known_.try_emplace(with_first_alike(state));
    if (is_new) known->second = simulate(known->first);
    return known->second;
  }

  int simulated() const { return simulated_; }

 private:
  // Workers that are alike take equal times whichever of them is slow: of each kind, the first ones take the part.
  ClusterState with_first_alike(const ClusterState& state) const {
    if (alike_.empty()) return state;
    ClusterState same{.lost_workers = state.lost_workers};
    std::map<int, int> of_worker;
    std::set<int> taken;
    for (const auto& [fault, worker] : state.slow) {
      const auto [place, is_new] = of_worker.try_emplace(worker, worker);
      const bool is_named =
          scenario_.faults->slow[static_cast<std::size_t>(fault)].target.which == FaultTarget::Which::one;
      for (int other = 0; is_new && !is_named && other < worker; ++other) {
        const auto at = [this](int index) { return alike_[static_cast<std::size_t>(index)]; };
        if (at(other) != at(worker) || taken.contains(other)) continue;
        place->second = other;
        break;
      }
      taken.insert(place->second);
      same.slow.emplace(fault, place->second);
    }
    return same;
  }

  TimesOfState times_in(const Report& report) const {
    return {.step_s = seconds_of_step(report, undisturbed_.units_per_step),
            .evaluation_s = seconds_of_evaluation(report)};
  }

  TimesOfState simulate(const ClusterState& state) {
    constexpr TimesOfState kImpossible{.step_s = std::numeric_limits<double>::infinity()};
    if (state == ClusterState{}) return times_in(undisturbed_);
    // A mesh goes on with as many workers as make whole replicas.
    std::optional<Scenario> fewer = sample_;
    for (int lost = state.lost_workers; lost > 0; ++lost) {
      fewer = with_fewer_workers(sample_, lost);
      if (fewer || lost >= training_workers(sample_)) break;
    }
    if (!fewer) return kImpossible;
    ++simulated_;
    fewer->faults = slow_all_the_time(state, training_workers(*fewer));
    try {
      return times_in(run_(*fewer, true).report);
    } catch (const MemoryError&) {
      return kImpossible;  // fewer devices have too little memory
    }
  }

  // Those that are left have the first numbers: a slow one beyond them has the last that is not slow already.
  std::shared_ptr<const FaultSettings> slow_all_the_time(const ClusterState& state, int workers) const {
    auto faults = std::make_shared<FaultSettings>();
    if (sample_.faults) faults->jitter = sample_.faults->jitter;
    std::set<int> taken;
    for (const auto& one : state.slow) taken.insert(one.second);
    std::map<int, int> numbers;  // of slow workers
    for (const auto& one : state.slow) {
      int number = std::min(one.second, workers - 1);
      while (one.second >= workers && number > 0 && taken.contains(number)) --number;
      if (numbers.try_emplace(one.second, number).second) taken.insert(number);
    }
    for (const auto& [index, worker] : state.slow) {
      SlowFault slow = scenario_.faults->slow[static_cast<std::size_t>(index)];
      slow.when = {};
      slow.again.reset();
      if (slow.target.links.empty()) {
        slow.target.which = FaultTarget::Which::one;
        slow.target.task = numbers.at(worker);
      }
      faults->slow.push_back(std::move(slow));
    }
    return faults;
  }

  const Scenario& scenario_;
  const Scenario& sample_;
  const Report& undisturbed_;
  const RunScenario& run_;
  const std::vector<int> alike_;  // Job::alike
  std::map<ClusterState, TimesOfState> known_;
  int simulated_ = 1;
};

}  // namespace

bool has_course(const Scenario& scenario) {
  if (!scenario.faults) return false;
  const FaultSettings& faults = *scenario.faults;
  if (faults.loses_workers() || faults.recovery.checkpoint.saves()) return true;
  return scenario.steps > kMostStepsOneByOne && !faults.slow.empty();
}

RunResult run_course(const Scenario& scenario, const RunScenario& run) {
  const RecoveryPolicy policy = recovery_policy(scenario);
  check_recovery_policy(scenario);
  const Scenario sample = sample_of(scenario);
  RunResult result = run(sample, false);
  StepTimes times(scenario, sample, result.report, run);
  const bool evaluates = scenario.evaluation && scenario.evaluation->every_steps <= scenario.steps;
  const CourseJob job{.steps = static_cast<double>(scenario.steps),
                      .workers = training_workers(scenario),
                      .policy = policy,
                      .repeats_functions = may_go_on_without(scenario),
                      .step_s = [&times](const ClusterState& state) { return times(state).step_s; },
                      .evaluation_every = evaluates ? static_cast<double>(scenario.evaluation->every_steps) : 0,
                      .evaluation_s = [&times](const ClusterState& state) { return times(state).evaluation_s; }};
  result.report.course = whole_course(job, *scenario.faults);
  result.report.evaluations.reset();  // those of the sample
  result.report.faults = fault_texts(*scenario.faults);
  result.report.notes.push_back(fmt::format(
      "the job has {} steps; {} of {} of its cluster were simulated, and the job made of their times", scenario.steps,
      sample.steps, times.simulated() == 1 ? "the one state" : fmt::format("each of {} states", times.simulated())));
  return result;
}

}  // namespace tandem
