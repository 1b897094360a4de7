#include "scenarios/run/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "engine/base/run_phase.h"
#include "engine/engine_info.h"
#include "scenarios/calibration/calibrate.h"
#include "scenarios/estimates/device_memory.h"
#include "scenarios/estimates/fitting_changes.h"
#include "scenarios/estimates/size_check.h"
#include "scenarios/faults/engine_faults.h"
#include "scenarios/faults/fault_settings.h"
#include "scenarios/faults/recovery_policy.h"
#include "scenarios/import/traces/trace.h"
#include "scenarios/job/job.h"
#include "scenarios/job/launch.h"
#include "scenarios/job/machine_watch.h"
#include "scenarios/job/parallel_settings.h"
#include "scenarios/reading/scenario_rules.h"
#include "scenarios/run/course_run.h"
#include "scenarios/run/memory_curve.h"
#include "scenarios/run/parallel_training.h"
#include "scenarios/run/resumption.h"
#include "scenarios/run/run_facts.h"
#include "scenarios/run/steady_state.h"
#include "scenarios/run/training.h"
#include "scenarios/workloads/trace_replay.h"
#include "scenarios/workloads/train_steps.h"
#include "strategies/base/errors.h"
#include "strategies/strategies.h"
#include "topologies/base/strict_yaml.h"

namespace tandem {
namespace {

EngineOptions options_of(const Job& job, const RunOptions& run_options) {
  const EngineSettings& asked = job.scenario.engine;
  EngineOptions options;
  options.workers = job.tasks;
  if (job.models_machine) options.topology = job.scenario.topology;
  options.values = asked.values;
  options.collectives = asked.collectives;
  options.nccl = asked.nccl;
  options.devices_in_step = run_options.devices_in_step.value_or(job.devices_in_step);
  options.work_spread = job.scenario.workload.spread;
  options.schedule_seed = run_options.schedule_seed;
  options.faults = engine_faults(job);
  options.graphs = asked.graphs;
  options.limits_memory = !job.models_machine || !is_memory_estimated(job);
  options.records = asked.records;
  if (asked.symmetry) options.alike = job.alike;
  if (run_options.merges_workers) options.few_alike = 2;
  if (run_options.is_quick) {
    options.few_alike = 1;
    options.has_witnesses = false;
    options.merges_repeats = job.models_machine && asked.steady_state;
  }
  if (asked.symmetry && run_options.only_report) options.alike_devices = job.alike_devices;
  return options;
}

std::unique_ptr<Engine> open(const Job& job, const RunOptions& run_options) {
  try {
    return open_engine(job.scenario.engine.name, options_of(job, run_options));
  } catch (const InputError&) {
    throw;
  } catch (const UnavailableError&) {
    throw;
  } catch (const RunError&) {
    throw;
  } catch (const Error& error) {  // an option that this engine does not have
    throw InputError({job.scenario.problem_at("engine", error.what())});
  }
}

// Refuses, before the run, everything that the engine cannot do.
void check_capabilities(const Job& job, const Capabilities& capabilities) {
  const auto refuse = [&job](const char* key, const std::string& problem) {
    throw InputError({job.scenario.problem_at(key, problem)});
  };
  if (job.trace != nullptr && !job.models_machine) {
    refuse("engine.name", "plays no traces: a trace has times of kernels, not the kernels");
  }
  const std::vector<DType>& dtypes = capabilities.gemm_dtypes;
  if (job.layers != nullptr && std::ranges::find(dtypes, job.layers->dtype) == dtypes.end()) {
    refuse("workload.dtype",
           fmt::format("engine '{}' multiplies no {}", capabilities.engine, name_of(job.layers->dtype)));
  }
  const bool is_rate = job.layers != nullptr && job.layers->quantised != Quantised::none && !job.layers->learning;
  if (is_rate && !job.models_machine) {
    refuse("workload.precision",
           fmt::format("engine '{}' quantises no operands; simulations do, and layers that are computed (values: real)",
                       capabilities.engine));
  }
  if (job.layers != nullptr && job.layers->offload.any() && !job.models_machine) {
    refuse("workload.offload",
           fmt::format("engine '{}' keeps all on its devices; simulations do not", capabilities.engine));
  }
  if (!capabilities.remote_devices && job.servers > 0) {
    refuse("strategy.name",
           fmt::format("strategy '{}' keeps variables on parameter servers, and engine '{}' reaches no memory of other "
                       "processes; run it in one process",
                       job.strategy.name, capabilities.engine));
  }
}

// Counts what the machine does from the last warm-up step to the last step, on the first worker's thread.
class MeasuredSteps {
 public:
  MeasuredSteps(const Scenario& scenario, std::function<void(int step, int steps)> progress)
      : warmup_steps_(scenario.warmup_steps), progress_(std::move(progress)) {
    if (warmup_steps_ == 0) begin_ = machine_counts();
  }

  void step_done(int done, int steps) {
    if (done >= warmup_steps_ && !begin_) begin_ = machine_counts();
    if (done == steps) end_ = machine_counts();
    if (progress_) progress_(done, steps);
  }

  std::optional<MachineUse> machine_use() const {
    return begin_ && end_ ? std::optional(use_between(*begin_, *end_)) : std::nullopt;
  }

 private:
  int warmup_steps_;
  std::function<void(int step, int steps)> progress_;
  std::optional<MachineCounts> begin_, end_;
};

RunResult run_job(const Job& job, const RunOptions& options);

// Returns the scenario with the topology that a run of it uses.
Scenario with_topology(Scenario scenario) {
  scenario.topology = topology_for(scenario);
  return scenario;
}

// Returns how many records a device leaves in a step, counted in a run of one replica. Returns 0 if that run would take
// a large part of the run itself, or fails.
double records_of_a_step(const Job& job) {
  constexpr int kPart = 8;
  const int one = job.devices_of_replica;
  if (job.trace != nullptr || job.devices < std::int64_t{kPart} * one) return 0;
  Scenario alone = one_replica_of(job.scenario, static_cast<int>(job.devices / one));
  alone.steps = 1;
  alone.warmup_steps = 0;
  alone.engine.symmetry = false;
  try {
    return static_cast<double>(run_job(job_of(alone), {}).timeline.records.size()) / one;
  } catch (const Error&) {
    return 0;
  }
}

Representatives representatives(const Job& job, const RunOptions& options) {
  const EngineSettings& asked = job.scenario.engine;
  const bool has_symmetry = job.engine.symmetry && asked.symmetry && !options.schedule_seed &&
                            asked.values.value_or(ValueMode::none) == ValueMode::none &&
                            asked.collectives.value_or(CollectiveFidelity::fluid) == CollectiveFidelity::fluid;
  return {.workers = has_symmetry, .devices = has_symmetry && options.only_report};
}

// Trains one worker's part of the job.
void train_worker(Worker& worker, const Job& job, const std::function<void(int step, int steps)>& progress,
                  TrainingResult& result) {
  if (job.trace != nullptr) {
    TraceReplay replay(*job.trace, worker);
    train_steps(replay, worker, job.scenario.steps, progress, result.report);
  } else if (job.divides_model) {
    train_parallel(worker, job, progress, result.report);
  } else {
    train(worker, job, progress, result);
  }
}

// Runs the job until its workers did what they were expected to do; more of them run each time. Returns their results.
std::vector<TrainingResult> train_all(const Job& job, Engine& engine, SizeCheck& size, MeasuredSteps& measured,
                                      Timeline& timeline) {
  std::vector<TrainingResult> results;
  const auto progress = [&measured](int step, int steps) { measured.step_done(step, steps); };
  const auto train_one = [&](Worker& worker) {
    size.begin_worker();
    train_worker(worker, job, progress, results.at(static_cast<std::size_t>(worker.index())));
  };
  tell_phase({.text = "begins its first step"});
  for (int runs = 1;; ++runs) {
    results.assign(job.tasks.size(), {});
    try {
      timeline = engine.run(train_one);
      return results;
    } catch (const RunAgain&) {
      const std::string text = fmt::format("begins its first step again (run {})", runs + 1);
      tell_phase({.text = text, .starts_again = true});
      size.before_next_run();
    }
  }
}

// Runs `part`, which is `job` or does in fewer passes what it does, and reports on `job`.
RunResult run_part(const Job& part, const Job& job, const RunOptions& options) {
  tell_phase({.text = "estimates what it needs"});
  SizeCheck size(
      part, representatives(part, options), [&part] { return records_of_a_step(part); }, options.memory_share);
  size.before_run();
  state_to_job(part.scenario);
  tell_phase({.text = "prepares the engine"});
  const std::unique_ptr<Engine> engine = open(part, options);
  const Capabilities& capabilities = engine->capabilities();
  check_capabilities(part, capabilities);
  RunResult result{.report = {}, .timeline = {}, .topology = job.scenario.topology};
  MeasuredSteps measured(part.scenario, options.progress);
  result.report = merged(train_all(part, *engine, size, measured, result.timeline), part);
  if (!capabilities.deterministic) result.report.machine_use = measured.machine_use();
  add_facts(result.report, job, capabilities, result.timeline, options.figures);
  for (const WorkerSpec& task : job.tasks) result.machines.push_back(task.topology_worker);
  return result;
}

// After so many periods of the order of work times usually repeat, where they do not after one.
constexpr int kUsualPeriods = 2;

// Runs as few passes of each step as show what the others do; nothing where they do not.
std::optional<RunResult> run_steady_state(const Job& job, const RunOptions& options) {
  if (!options.only_report || options.schedule_seed || job.scenario.faults) return std::nullopt;
  int least = 1, multiple = 1;
  while (std::optional<FewerPasses> fewer = fewer_passes(job, least, multiple)) {
    RunResult result = run_part(job_of(fewer->scenario), job, options);
    const auto seen = seen_period(result.report.summary, result.timeline, *fewer, options.figures);
    if (seen && seen->summary) {
      result.report.summary = *seen->summary;
      result.report.notes.push_back(note_of(*fewer, job));
      return result;
    }
    if (seen) {
      multiple = std::lcm(multiple, seen->periods);
    } else {
      least = 2 * fewer->passes;
      multiple = kUsualPeriods;
    }
  }
  return std::nullopt;
}

RunResult run_job(const Job& job, const RunOptions& options) {
  const std::optional<MemoryNeed> memory = job.models_machine ? memory_need(job) : std::nullopt;
  if (memory && !memory->fits() && !options.has_all_memory) check_memory(job, memory, text_of(changes_that_fit(job)));
  std::optional<RunResult> result = run_steady_state(job, options);
  if (!result) result = run_part(job, job, options);
  result->report.memory = memory;
  if (memory && !options.only_report) result->memory = memory_curve(job, result->timeline);
  return std::move(*result);
}

// Returns the throughput of one replica with its share of the batch; 0 if it needs more memory than there is.
double throughput_alone(const Job& job, int replicas) {
  try {
    const Scenario alone = one_replica_of(job.scenario, replicas);
    return run_job(job_of(alone), {.only_report = true}).report.throughput();
  } catch (const MemoryError&) {
    return 0;
  }
}

// Adds how well the job scales: weak scaling, by simulations only, since they take no machine time.
void add_scaling(Report& report, const Job& job) {
  const bool has_replica_on_worker = job.devices_of_replica <= job.scenario.devices.per_worker;
  if (!report.deterministic || report.replicas <= 1 || !has_replica_on_worker) return;
  const double one = throughput_alone(job, report.replicas);
  if (one > 0) report.scaling_efficiency = report.throughput() / (one * report.replicas);
}

// A real engine makes faults happen only where that was asked for.
void check_injection(const Scenario& scenario, const RunOptions& options) {
  if (!scenario.faults || engine_info(scenario.engine.name).needs_topology) return;
  const FaultSettings& faults = *scenario.faults;
  check_recovery_policy(scenario);
  if (!faults.trace.empty()) {
    throw InputError(
        {scenario.problem_at("faults", fmt::format("engine '{}' is this machine, whose machines do not come and go",
                                                   scenario.engine.name))});
  }
  const bool has_any = faults.loses_workers() || !faults.slow.empty() || !faults.jitter.empty();
  if (!has_any || options.injects_faults) return;
  throw InputError({scenario.problem_at(
      "faults",
      fmt::format("engine '{}' is this machine, and makes them happen with --inject only", scenario.engine.name))});
}

RunResult run_once(const Scenario& run, const RunOptions& options, const LaunchedJob* launched) {
  const Job job = job_of(run);
  if (launched != nullptr) check_tf_config(job.tasks, launched->rank(), process_environment());
  RunResult result = run_job(job, options);
  if (run.faults) result.report.faults = fault_texts(*run.faults);
  add_notes(result.report, job, result.timeline);
  if (options.measures_scaling) add_scaling(result.report, job);
  return result;
}

RunResult run_with_topology(const Scenario& run, const RunOptions& options, const LaunchedJob* launched) {
  if (engine_info(run.engine.name).needs_topology && has_course(run)) {
    return run_course(run, [&](const Scenario& state, bool for_report) {
      RunOptions of_state = options;
      if (for_report) {
        of_state.is_quick = of_state.only_report = true;
        of_state.measures_scaling = false;
        of_state.figures = Figures::of_steps;
        of_state.progress = nullptr;
      }
      return run_with_topology(state, of_state, launched);
    });
  }
  if (step_checkpoints(run)) {
    return run_with_checkpoints(run, options.may_resume,
                                [&](const Scenario& rest) { return run_once(rest, options, launched); });
  }
  return run_once(run, options, launched);
}

}  // namespace

RunResult run_scenario(const Scenario& scenario, const RunOptions& options) {
  Diagnostics problems;
  check_rules(scenario, problems);
  problems.throw_if_any();
  const LaunchedJob* launched = join_launch(scenario);
  const Scenario run = with_topology(scenario);
  try {
    check_injection(run, options);
    return run_with_topology(run, options, launched);
  } catch (const StrategyError& error) {  // the scenario's strategy cannot do what its other parts ask for
    throw InputError({scenario.problem_at("strategy", error.what())});
  } catch (const ImpossibleError& error) {
    throw InputError({scenario.problem_at(error.part(), error.what())});
  }
}

std::shared_ptr<const Topology> topology_for(const Scenario& scenario) {
  if (scenario.topology || !engine_info(scenario.engine.name).needs_topology) return scenario.topology;
  return machine_topology(machine_engine().name, {.max_devices = 0, .quick = true, .progress = {}});
}

}  // namespace tandem
