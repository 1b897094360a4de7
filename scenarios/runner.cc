#include "scenarios/runner.h"

#include <algorithm>

#include "scenarios/calibrate.h"
#include "scenarios/workloads/workload.h"
#include "strategies/errors.h"
#include "strategies/strategies.h"

namespace tandem {
namespace {

// The scenario with the options' changes.
Scenario with_options(Scenario scenario, const RunOptions& options) {
  // What the scenario asks of its own engine means nothing to another one.
  if (!options.engine.empty() && options.engine != scenario.engine.name) {
    scenario.engine = {.name = options.engine, .values = {}, .collectives = {}};
  }
  if (options.topology) scenario.topology = options.topology;
  if (options.replicas) scenario.devices.per_worker = *options.replicas;
  if (options.steps) scenario.steps = *options.steps;
  if (options.cross_device_ops) scenario.strategy.cross_device_ops = *options.cross_device_ops;
  if (options.values) scenario.engine.values = options.values;
  if (options.collectives) scenario.engine.collectives = options.collectives;
  if (scenario.strategy.name == "one_device" && scenario.devices.per_worker != 1) {
    throw InputError({scenario.problem_at(
        "strategy.name", "'one_device' runs one replica, not " + std::to_string(scenario.devices.per_worker))});
  }
  if (scenario.steps <= scenario.warmup_steps) {
    throw InputError({scenario.problem_at("steps", "must be more than the warm-up steps")});
  }
  return scenario;
}

std::unique_ptr<Engine> open(Scenario& scenario) {
  if (!scenario.topology && engine_needs_topology(scenario.engine.name)) {
    scenario.topology = machine_topology("cpu", {.max_devices = 0, .quick = true, .progress = {}});
  }
  if (scenario.topology && scenario.topology->worker_count() > 1) {
    throw InputError({scenario.problem_at("topology", "strategy '" + scenario.strategy.name +
                                                          "' runs on one worker; this topology has " +
                                                          std::to_string(scenario.topology->worker_count()))});
  }
  EngineOptions options;
  options.workers = {WorkerSpec{
      .job = "localhost", .device_type = scenario.devices.type, .device_count = scenario.devices.per_worker}};
  if (engine_needs_topology(scenario.engine.name)) options.topology = scenario.topology;
  options.values = scenario.engine.values;
  options.collectives = scenario.engine.collectives;
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

// What an engine lacks is known before the run.
void check_capabilities(const Scenario& scenario, const Capabilities& capabilities) {
  const auto* layers = std::get_if<LayersSettings>(&scenario.workload.kind);
  if (layers && std::find(capabilities.gemm_dtypes.begin(), capabilities.gemm_dtypes.end(), layers->dtype) ==
                    capabilities.gemm_dtypes.end()) {
    throw InputError({scenario.problem_at("workload.dtype", "engine '" + capabilities.engine + "' multiplies no " +
                                                                std::string(name_of(layers->dtype)))});
  }
}

// One worker's part of the job.
void train(Worker& worker, const Scenario& scenario, const RunOptions& options, Report& report) {
  StrategyOptions strategy_options;
  strategy_options.cross_device_ops = scenario.strategy.cross_device_ops;
  strategy_options.packing = {.num_packs = scenario.strategy.num_packs,
                              .bytes_per_pack = scenario.strategy.bytes_per_pack.value_or(0)};
  const std::unique_ptr<Strategy> strategy = make_strategy(scenario.strategy.name, worker, strategy_options);
  const std::unique_ptr<Workload> workload = make_workload(scenario.workload, *strategy);
  workload->prepare();
  for (Device* device : worker.devices()) device->synchronize();
  for (int step = 0; step < scenario.steps; ++step) {
    worker.begin_step(step);
    workload->run_step(step);
    worker.end_step();
    if (options.progress) options.progress(step + 1, scenario.steps);
  }
  workload->finish(report, worker.capabilities().carries_values);
  report.replicas = strategy->num_replicas_in_sync();
  report.cross_device_ops = strategy->extended().cross_device_ops_name();
  report.throughput_unit = workload->throughput_unit();
}

void describe(Report& report, const Scenario& scenario, const Capabilities& capabilities, const Timeline& timeline) {
  report.scenario = scenario.name;
  report.scenario_hash = scenario.hash;
  report.engine = capabilities.engine;
  report.strategy = scenario.strategy.name;
  report.topology = scenario.topology ? scenario.topology->name() : "this machine";
  report.topology_provenance = scenario.topology ? std::string(name_of(scenario.topology->provenance())) : "measured";
  report.steps = scenario.steps;
  report.warmup_steps = scenario.warmup_steps;
  report.deterministic = capabilities.deterministic;
  report.units_per_step = scenario.workload.batch;
  report.summary = summarize(timeline, scenario.warmup_steps);
  report.settings = timeline.settings;
  report.notes = timeline.notes;
}

RunResult run_once(Scenario scenario, const RunOptions& options) {
  RunResult result;
  const std::unique_ptr<Engine> engine = open(scenario);
  check_capabilities(scenario, engine->capabilities());
  result.timeline = engine->run([&](Worker& worker) { train(worker, scenario, options, result.report); });
  describe(result.report, scenario, engine->capabilities(), result.timeline);
  return result;
}

}  // namespace

RunResult run_scenario(const Scenario& scenario, const RunOptions& options) {
  const Scenario changed = with_options(scenario, options);
  try {
    RunResult result = run_once(changed, options);
    // Weak scaling, where it costs no machine time to know: one replica with its share of the batch.
    if (result.report.deterministic && result.report.replicas > 1) {
      Scenario alone = changed;
      alone.devices.per_worker = 1;
      alone.workload.batch = std::max(1, changed.workload.batch / result.report.replicas);
      const double one = run_once(alone, {}).report.throughput();
      if (one > 0) result.report.scaling_efficiency = result.report.throughput() / (one * result.report.replicas);
    }
    return result;
  } catch (const ValueError& error) {
    throw InputError({changed.problem_at("strategy", error.what())});
  }
}

}  // namespace tandem
