#include "scenarios/runner.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/engine_info.h"
#include "engine/run_phase.h"
#include "reports/op_time.h"
#include "scenarios/alike.h"
#include "scenarios/calibrate.h"
#include "scenarios/collective_limits.h"
#include "scenarios/device_memory.h"
#include "scenarios/expected_error.h"
#include "scenarios/import/trace.h"
#include "scenarios/job.h"
#include "scenarios/launch.h"
#include "scenarios/machine_watch.h"
#include "scenarios/parallel_settings.h"
#include "scenarios/parallel_training.h"
#include "scenarios/run_facts.h"
#include "scenarios/scenario_rules.h"
#include "scenarios/size_check.h"
#include "scenarios/training.h"
#include "scenarios/unused_keys.h"
#include "scenarios/workloads/trace_replay.h"
#include "strategies/base/errors.h"
#include "strategies/strategies.h"
#include "topologies/base/strict_yaml.h"

namespace tandem {
namespace {

std::unique_ptr<Engine> open(Scenario& scenario, const RunOptions& run_options) {
  scenario.topology = topology_for(scenario);
  EngineOptions options;
  options.workers = tasks_of(scenario);
  if (engine_info(scenario.engine.name).needs_topology) options.topology = scenario.topology;
  options.values = scenario.engine.values;
  options.collectives = scenario.engine.collectives;
  options.nccl = scenario.engine.nccl;
  options.devices_in_step = devices_in_step(scenario);
  options.work_spread = scenario.workload.spread;
  options.schedule_seed = run_options.schedule_seed;
  options.graphs = scenario.engine.graphs;
  options.records = scenario.engine.records;
  if (scenario.engine.symmetry && engine_info(scenario.engine.name).symmetry) options.alike = alike_tasks(scenario);
  try {
    return open_engine(scenario.engine.name, std::move(options));
  } catch (const InputError&) {
    throw;
  } catch (const UnavailableError&) {
    throw;
  } catch (const RunError&) {
    throw;
  } catch (const Error& error) {  // an option that this engine does not have
    throw InputError({scenario.problem_at("engine", error.what())});
  }
}

// Refuses, before the run, everything that the engine cannot do.
void check_capabilities(const Scenario& scenario, const Capabilities& capabilities) {
  const bool is_trace = std::holds_alternative<TraceSettings>(scenario.workload.kind);
  if (is_trace && !engine_info(scenario.engine.name).needs_topology) {
    throw InputError(
        {scenario.problem_at("engine.name", "plays no traces: a trace has times of kernels, not the kernels")});
  }
  const auto* layers = std::get_if<LayersSettings>(&scenario.workload.kind);
  if (layers && std::find(capabilities.gemm_dtypes.begin(), capabilities.gemm_dtypes.end(), layers->dtype) ==
                    capabilities.gemm_dtypes.end()) {
    throw InputError({scenario.problem_at("workload.dtype", "engine '" + capabilities.engine + "' multiplies no " +
                                                                std::string(name_of(layers->dtype)))});
  }
  if (!capabilities.remote_devices && parameter_servers(scenario) > 0) {
    throw InputError({scenario.problem_at(
        "strategy.name", fmt::format("strategy '{}' keeps variables on parameter servers, and engine '{}' reaches no "
                                     "memory of other processes; run it in one process",
                                     scenario.strategy.name, capabilities.engine))});
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
    if (done == warmup_steps_) begin_ = machine_counts();
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

RunResult run_once(Scenario scenario, const RunOptions& options);

// Returns how many records a device leaves in a step, counted in a run of one replica. Returns 0 if that run would take
// a large part of the run itself, or fails.
double records_of_a_step(const Scenario& scenario) {
  constexpr int kPart = 8;
  if (std::holds_alternative<TraceSettings>(scenario.workload.kind)) return 0;
  const int one = devices_of_one_replica(scenario);
  const std::int64_t all = training_devices(scenario);
  if (all < std::int64_t{kPart} * one) return 0;
  Scenario alone = one_replica_of(scenario, static_cast<int>(all / one));
  alone.steps = 1;
  alone.warmup_steps = 0;
  alone.engine.symmetry = false;
  try {
    return static_cast<double>(run_once(alone, {}).timeline.records.size()) / one;
  } catch (const Error&) {
    return 0;
  }
}

// Returns whether workers may represent others.
bool has_symmetry(const Scenario& scenario, const RunOptions& options) {
  return engine_info(scenario.engine.name).symmetry && scenario.engine.symmetry && !options.schedule_seed &&
         scenario.engine.values.value_or(ValueMode::none) == ValueMode::none &&
         scenario.engine.collectives.value_or(CollectiveFidelity::fluid) == CollectiveFidelity::fluid;
}

RunResult run_once(Scenario scenario, const RunOptions& options) {
  RunResult result;
  const bool is_prediction = engine_info(scenario.engine.name).needs_topology;
  if (is_prediction) scenario.topology = topology_for(scenario);
  const std::optional<MemoryNeed> memory = is_prediction ? memory_need(scenario) : std::nullopt;
  check_memory(scenario, memory);
  const std::vector<WorkerSpec> tasks = tasks_of(scenario);
  tell_phase({.text = "estimates what it needs"});
  SizeCheck size(
      scenario, has_symmetry(scenario, options), [&scenario] { return records_of_a_step(scenario); },
      options.memory_share);
  size.before_run();
  state_to_job(scenario);
  tell_phase({.text = "prepares the engine"});
  const std::unique_ptr<Engine> engine = open(scenario, options);
  check_capabilities(scenario, engine->capabilities());
  const bool divides_model = strategy_info(scenario.strategy.name).division.has_value();
  std::vector<TrainingResult> results;
  MeasuredSteps measured(scenario, options.progress);
  const auto progress = [&measured](int step, int steps) { measured.step_done(step, steps); };
  const auto train_one = [&](Worker& worker) {
    size.begin_worker();
    TrainingResult& mine = results.at(static_cast<std::size_t>(worker.index()));
    if (const auto* trace = std::get_if<TraceSettings>(&scenario.workload.kind)) {
      TraceReplay replay(*trace, worker);
      train_steps(replay, worker, scenario.steps, progress, mine.report);
    } else if (divides_model) {
      train_parallel(worker, scenario, progress, mine.report);
    } else {
      train(worker, scenario, progress, mine);
    }
  };
  tell_phase({.text = "begins its first step"});
  for (int runs = 1; runs > 0;) {
    results.assign(tasks.size(), {});
    try {
      result.timeline = engine->run(train_one);
      runs = 0;
    } catch (const RunAgain&) {
      const std::string text = fmt::format("begins its first step again (run {})", ++runs);
      tell_phase({.text = text, .starts_again = true});
      size.before_next_run();
    }
  }
  result.report = merged(results, scenario);
  add_facts(result.report, scenario, engine->capabilities(), result.timeline);
  result.report.memory = memory;
  result.report.cores = shared_cores(scenario, tasks, engine->capabilities());
  if (is_prediction) {
    result.report.calibrated = calibrated_ranges(scenario.topology->collectives());
    result.report.expected_error = error_band_of(prediction_kind(scenario, result.report.cores));
  }
  if (!result.report.deterministic) {
    result.report.machine_use = measured.machine_use();
    if (result.report.has_parts()) {
      result.report.counts = work_counts(result.timeline, scenario.warmup_steps);
      result.report.op_time = op_time(result.timeline, scenario.warmup_steps);
    }
  }
  if (auto& use = result.report.machine_use) use->gpus = result.timeline.gpus;
  result.topology = scenario.topology;
  for (const WorkerSpec& task : tasks) result.machines.push_back(task.topology_worker);
  const std::vector<std::string> shared = notes_of_shared_gpus(scenario, tasks, engine->capabilities());
  result.report.notes.insert(result.report.notes.end(), shared.begin(), shared.end());
  return result;
}

void add_notes_of_unused_keys(const Scenario& scenario, RunResult& result) {
  UnusedKeys unused;
  find_unused_keys(scenario, result.report, result.timeline, unused);
  const bool models_machine = engine_info(scenario.engine.name).needs_topology;
  if (models_machine) {
    const bool is_seen = !may_have_representatives(scenario);
    find_unused_keys(*result.topology,
                     is_seen ? result.timeline.consulted : with_links_of(*result.topology, result.timeline.consulted),
                     unused);
  }
  for (std::string& note : unused.notes()) result.report.notes.push_back(std::move(note));
}

// Returns 0 if one replica needs more memory than there is.
double throughput_alone(const Scenario& scenario) {
  try {
    return run_once(scenario, {}).report.throughput();
  } catch (const MemoryError&) {
    return 0;
  }
}

}  // namespace

RunResult run_scenario(const Scenario& scenario, const RunOptions& options) {
  Diagnostics problems;
  check_rules(scenario, problems);
  problems.throw_if_any();
  if (const LaunchedJob* job = join_launch(scenario)) {
    check_tf_config(tasks_of(scenario), job->rank(), process_environment());
  }
  try {
    RunResult result = run_once(scenario, options);
    std::vector<std::string>& notes = result.report.notes;
    notes.insert(notes.end(), scenario.notes.begin(), scenario.notes.end());
    add_notes_of_unused_keys(scenario, result);
    // Weak scaling: one replica with its share of the batch. Simulations only, since they take no machine time.
    if (options.measures_scaling && result.report.deterministic && result.report.replicas > 1 &&
        devices_of_one_replica(scenario) <= scenario.devices.per_worker) {
      const double one = throughput_alone(one_replica_of(scenario, result.report.replicas));
      if (one > 0) result.report.scaling_efficiency = result.report.throughput() / (one * result.report.replicas);
    }
    return result;
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
