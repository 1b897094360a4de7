#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/base/command.h"
#include "cli/base/exit_codes.h"
#include "cli/base/interrupt.h"
#include "cli/base/join.h"
#include "cli/base/load.h"
#include "cli/base/output.h"
#include "cli/base/page_document.h"
#include "cli/base/phase.h"
#include "cli/base/progress_line.h"
#include "cli/base/stored_run.h"
#include "cli/paced_run.h"
#include "engine/engine_info.h"
#include "reports/comparison/compare.h"
#include "reports/comparison/run_comparison.h"
#include "reports/comparison/strategy_comparison.h"
#include "reports/run/report_text.h"
#include "scenarios/calibration/calibrate.h"
#include "scenarios/calibration/calibrate_cluster.h"
#include "scenarios/job/job.h"
#include "scenarios/job/machine_watch.h"
#include "scenarios/reading/scenario_flags.h"
#include "scenarios/reading/strategy_variants.h"
#include "scenarios/run/runner.h"
#include "scenarios/run/unused_keys.h"
#include "scenarios/scenario/words.h"
#include "strategies/cross_device/make_cross_device_ops.h"

namespace tandem {
namespace {

struct CompareFlags {
  CommonOptions common;
  std::string scenario;                 // or the first stored run
  std::string other{};                  // the second one; empty: the scenario is run
  std::vector<std::string> settings{};  // --set
  std::string topology;
  std::vector<std::string> engines;  // empty: see engines_for
  std::optional<DeviceType> device_type;
  std::vector<int> replicas;
  std::vector<std::string> cross_device_ops;
  std::string steps{};
  int tries = 3;
  bool all = false;
  bool details = false;
  bool injects_faults = false;
};

// What is run on both engines.
struct Variant {
  Scenario scenario;
  std::optional<int> replicas{};   // instead of the scenario's
  std::string cross_device_ops{};  // likewise
  std::string name{};              // with --all: "mirrored on 2 devices"
  std::string refusal{};           // why it cannot run
};

std::vector<std::string> operations_of(const CompareFlags& flags) {
  if (flags.cross_device_ops != std::vector<std::string>{"all"}) return flags.cross_device_ops;
  std::vector<std::string> operations;
  for (const std::string& name : cross_device_ops_names()) {
    if (name != "auto") operations.emplace_back(name);  // "auto" chooses one of the others
  }
  return operations;
}

std::vector<int> device_counts(const CompareFlags& flags) {
  if (!flags.replicas.empty()) return flags.replicas;
  if (const LaunchedJob* job = joined_job()) return {job->rank().count, 2 * job->rank().count};
  return {1, 2, 4};
}

// Returns every strategy on each number of devices.
std::vector<Variant> all_strategies(const CompareFlags& flags, const Scenario& scenario) {
  const int ranks = joined_job() == nullptr ? 1 : joined_job()->rank().count;
  std::vector<Variant> variants;
  for (StrategyVariant& one : strategy_variants(scenario, device_counts(flags), operations_of(flags), ranks)) {
    std::string name = one.strategy;
    if (one.cross_device_ops != "auto") name += ", " + one.cross_device_ops;
    variants.push_back({.scenario = one.scenario.value_or(scenario),
                        .name = fmt::format("{} on {} device{}", name, one.devices, one.devices == 1 ? "" : "s"),
                        .refusal = std::move(one.refusal)});
  }
  return variants;
}

std::vector<Variant> variants_of(const CompareFlags& flags, const Scenario& scenario) {
  if (flags.all) return all_strategies(flags, scenario);
  std::vector<std::string> operations = operations_of(flags);
  if (operations.empty()) operations.emplace_back();
  std::vector<std::optional<int>> replicas(flags.replicas.begin(), flags.replicas.end());
  if (replicas.empty()) replicas.emplace_back();
  std::vector<Variant> variants;
  for (const auto& count : replicas) {
    for (const auto& operation : operations) {
      variants.push_back({.scenario = scenario, .replicas = count, .cross_device_ops = operation});
    }
  }
  return variants;
}

// Returns the scenario's engine if it measures, else the default engine that does; and the engine that predicts it.
std::vector<std::string> engines_for(const CompareFlags& flags, const Scenario& scenario) {
  if (!flags.engines.empty()) return flags.engines;
  const EngineInfo& own = engine_info(scenario.engine.name);
  const EngineInfo& measuring = own.needs_topology ? machine_engine() : own;
  return {std::string(measuring.name), std::string(model_engine().name)};
}

// Returns the type of devices that both runs use, which is the measuring engine's.
DeviceType device_type_of(const CompareFlags& flags, const Scenario& scenario) {
  if (flags.device_type) return *flags.device_type;
  return device_type_for(scenario, {.engine = flags.engines.front()});
}

// Returns the element types of the scenario's matrix products.
std::vector<DType> dtypes_of(const Scenario& scenario) {
  std::vector<DType> dtypes = {DType::f32};
  if (const auto* layers = std::get_if<LayersSettings>(&scenario.workload.kind)) dtypes.push_back(layers->dtype);
  return dtypes;
}

// Returns the topology to simulate: the given file's, or that of the machine that the measuring engine runs on.
// `disturbance` becomes what disturbed the calibration.
std::shared_ptr<const Topology> topology_for(const CompareFlags& flags, const Scenario& scenario,
                                             ProgressLine& progress, std::string& disturbance) {
  if (auto topology = topology_from(flags.topology, flags.common)) {
    disturbance = topology->facts().disturbance();
    return topology;
  }
  CalibrateOptions options;
  options.quick = true;
  const std::vector<int> counts = flags.all ? device_counts(flags) : flags.replicas;
  options.max_devices = scenario.devices.per_worker;
  if (!counts.empty()) options.max_devices = *std::max_element(counts.begin(), counts.end());
  options.device_type = flags.device_type;
  options.dtypes = dtypes_of(scenario);
  if (const LaunchedJob* job = joined_job()) {
    options.progress = progress.of_stages("calibrating the machines of the launch");
    auto found = calibrate_cluster(flags.engines.front(), job->rank().count, options);
    progress.finish();
    return std::make_shared<const Topology>(std::move(found.topology));
  }
  if (!flags.all) options.max_devices *= training_workers(scenario);  // all of them on this machine
  options.progress = progress.of_stages("calibrating this machine");
  std::shared_ptr<const Topology> topology;
  const auto use = measure_undisturbed(flags.tries, [&](std::vector<GpuUse>& gpus) {
    options.gpus = &gpus;
    topology = machine_topology(flags.engines.front(), options);
  });
  progress.finish();
  if (use && use->is_disturbed()) disturbance = lost_text(*use);
  return topology;
}

// All processes of a launch measure. There is only one try, because they would have to agree on whether another one
// follows.
void join_launched(CompareFlags& flags) {
  const EngineInfo* engine = find_engine(flags.engines.front());
  if (join_processes(engine) == nullptr) return;
  flags.tries = 1;
}

// Returns the variant on an engine; `workers`: "" for the scenario's.
Scenario on_engine(const CompareFlags& flags, const Variant& variant, const std::string& engine,
                   const std::string& workers, std::shared_ptr<const Topology> topology) {
  ScenarioFlags changes;
  changes.engine = engine;
  changes.topology = std::move(topology);
  if (variant.replicas) changes.replicas = std::to_string(*variant.replicas);
  changes.device_type = word_of(device_type_words(), *flags.device_type);
  changes.steps = flags.steps;
  changes.cross_device_ops = variant.cross_device_ops;
  changes.workers = workers;
  return with_flags(variant.scenario, changes);
}

RunResult run_variant(const CompareFlags& flags, const Variant& variant, const Scenario& scenario,
                      ProgressLine& progress) {
  const std::string what =
      fmt::format("{} on {}", variant.name.empty() ? scenario.name : variant.name, scenario.engine.name);
  RunOptions options;
  options.injects_faults = flags.injects_faults;
  options.progress = progress.of_steps(what);
  const Phase phase("run " + what);
  return run_scenario(scenario, options);
}

std::string default_engines_text() {
  return fmt::format("the scenario's or {}, and {}", machine_engine().name, model_engine().name);
}

// What there is so far, and the details of both runs that the last one's page draws.
struct Compared {  // NOLINT(bugprone-exception-escape): the move of a JSON value promises less than it keeps
  std::vector<Comparison> comparisons;
  std::vector<std::string> left_out;  // with --all
  nlohmann::ordered_json measured_details, predicted_details;
};

void write(const Output& output, const nlohmann::ordered_json& document, const std::string& text) {
  if (output.json()) {
    output.write_json(document);
  } else {
    output.write_text(text);
  }
  output.write_page(document);
}

void write_strategies(const Output& output, const Compared& compared) {
  StrategyComparison strategies{.comparisons = compared.comparisons, .left_out = compared.left_out};
  sort_by_time(strategies.comparisons);
  write(output, strategy_comparison_to_json(strategies), strategy_comparison_text(strategies));
}

// The comparisons, with the details of the last one.
nlohmann::ordered_json detailed_comparisons(const Compared& compared) {
  nlohmann::ordered_json document = comparisons_to_json(compared.comparisons);
  nlohmann::ordered_json& last = document["comparisons"].back();
  last["measured"]["details"] = compared.measured_details;
  last["predicted"]["details"] = compared.predicted_details;
  return document;
}

void write_result(const CompareFlags& flags, const Output& output, const Compared& compared) {
  if (flags.all) return write_strategies(output, compared);
  if (output.json()) {
    output.write_json(flags.details ? detailed_comparisons(compared) : comparisons_to_json(compared.comparisons));
  } else {
    output.write_text(comparisons_text(compared.comparisons, flags.details));
  }
  if (output.wants_page()) output.write_page(detailed_comparisons(compared));
}

// Measures and predicts a variant.
void add_comparison(const CompareFlags& flags, const Variant& variant, const std::shared_ptr<const Topology>& topology,
                    const std::string& disturbance, ProgressLine& progress, Compared& compared) {
  const int devices =
      variant.replicas.value_or(variant.scenario.devices.per_worker) * training_workers(variant.scenario);
  const bool knows_pace = flags.device_type == DeviceType::cpu && joined_job() == nullptr;
  const PacedMeasurement measurement{.engine = flags.engines[0],
                                     .devices = devices,
                                     .tries = flags.tries,
                                     .usual = knows_pace ? pace_of(*topology, devices) : std::nullopt};
  const Scenario measuring = on_engine(flags, variant, flags.engines[0], "", topology);
  PacedRun paced = measure_at_pace(measurement, [&] { return run_variant(flags, variant, measuring, progress); });
  RunResult& measured = paced.result;
  if (!reports_for_job()) return;
  const std::string workers = joined_job() == nullptr ? "" : std::to_string(measured.report.workers);
  std::vector<std::string> notes;
  const auto at_its_pace = topology_at(topology, measurement, paced, notes);
  const Scenario predicting = on_engine(flags, variant, flags.engines[1], workers, at_its_pace);
  RunResult predicted = run_variant(flags, variant, predicting, progress);
  predicted.report.notes.insert(predicted.report.notes.end(), notes.begin(), notes.end());
  keep_unused_in_both(measured.report.notes, predicted.report.notes);
  compared.comparisons.push_back(compare(measured.report, predicted.report, disturbance));
  if (!flags.common.html.empty() || (flags.common.json && flags.details)) {
    compared.measured_details = details_json(measured);
    compared.predicted_details = details_json(predicted);
  }
}

// The same; with --all, what cannot run is left out.
void compare_variant(const CompareFlags& flags, const Variant& variant, const std::shared_ptr<const Topology>& topology,
                     const std::string& disturbance, ProgressLine& progress, Compared& compared) {
  const auto leave_out = [&](const std::string& why) { compared.left_out.push_back(variant.name + ": " + why); };
  if (!variant.refusal.empty()) return leave_out(variant.refusal);
  if (!flags.all) return add_comparison(flags, variant, topology, disturbance, progress, compared);
  try {
    add_comparison(flags, variant, topology, disturbance, progress, compared);
  } catch (const InputError& error) {
    leave_out(error.diagnostics().front().message);
  } catch (const UnavailableError& error) {
    leave_out(error.what());
  }
}

int compare_engines(CompareFlags flags) {
  if (!flags.engines.empty()) join_launched(flags);
  const Output output(flags.common);
  const Scenario scenario = scenario_from(flags.scenario, flags.settings);
  flags.engines = engines_for(flags, scenario);
  join_launched(flags);
  flags.device_type = device_type_of(flags, scenario);
  ProgressLine progress(flags.common);
  Compared compared;
  try {
    std::string disturbance;
    const auto topology = topology_for(flags, scenario, progress, disturbance);
    if (!disturbance.empty()) disturbance = "while the machine was calibrated, " + disturbance;
    for (const Variant& variant : variants_of(flags, scenario)) {
      compare_variant(flags, variant, topology, disturbance, progress, compared);
    }
    if (compared.comparisons.empty() && reports_for_job()) {
      throw RunError(fmt::format("no strategy can be compared: {}", fmt::join(compared.left_out, "; ")));
    }
  } catch (const std::exception&) {
    // After Ctrl-C, the complete comparisons are still written.
    progress.finish();
    if (interrupt_requested() && !compared.comparisons.empty()) write_result(flags, output, compared);
    throw;
  }
  progress.finish();
  if (reports_for_job()) write_result(flags, output, compared);
  return kOk;
}

int compare_stored(const CompareFlags& flags) {
  const Output output(flags.common);
  if (is_standard_input(flags.scenario) || is_standard_input(flags.other)) {
    throw InputError({{.file = "-", .path = "", .message = "stored runs are read from files only"}});
  }
  const StoredRun before = stored_run(flags.scenario), now = stored_run(flags.other);
  const RunComparison runs{.baseline_name = flags.scenario,
                           .name = flags.other,
                           .baseline = before.report,
                           .now = now.report,
                           .scenario_changes = content_changes(now, before)};
  write(output, run_comparison_to_json(runs), run_comparison_text(runs));
  return kOk;
}

}  // namespace

void add_compare(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "compare", "Run a scenario on two engines, or take two stored runs, and show how far apart they are");
  auto flags = std::make_shared<CompareFlags>();
  command
      ->add_option("scenario", flags->scenario,
                   "The scenario file, - for the standard input; or the stored run that is the baseline")
      ->required();
  CLI::Option* const other =
      command->add_option("other", flags->other, "A stored run (of run --json), to compare with the baseline");
  add_set_option(*command, flags->settings);
  command
      ->add_option("--engines", flags->engines,
                   "The measuring and the predicting engine (default: " + default_engines_text() + ")")
      ->delimiter(',')
      ->expected(2);
  command->add_option("--topology", flags->topology,
                      "What the second engine simulates (default: this machine, calibrated now)");
  command
      ->add_option("--device-type", flags->device_type,
                   "Run on devices of this type: cpu or gpu (default: the scenario's, or GPUs with an engine of GPUs)")
      ->transform(device_types());
  command->add_option("--replicas", flags->replicas, "One or more numbers of replicas: 1,2")
      ->delimiter(',')
      ->check(CLI::Range(1, 1 << 20));
  command->add_option("--cross-device-ops", flags->cross_device_ops, "One or more, or 'all'")
      ->delimiter(',')
      ->check(known_cross_device_ops({"all"}));
  command->add_option("--steps", flags->steps, "Steps of each run, warm-up included")->type_name("INT");
  command
      ->add_option("--tries", flags->tries,
                   "How often to measure while others disturb it (default: 3; several ranks measure once)")
      ->check(CLI::Range(1, 100));
  command->add_flag("--all", flags->all,
                    "Every strategy on the scenario's workload, on 1, 2 and 4 devices or on those of --replicas");
  command->add_flag("--inject", flags->injects_faults,
                    "Make the scenario's faults happen where it is measured; they are else refused");
  command->add_flag("--details", flags->details,
                    "Every part of the step and every collective, of every variant; with --json, also what pictures "
                    "need, so that `report` writes the same page");
  add_common_options(*command, flags->common);
  add_page_option(*command, flags->common);
  for (const char* const of_a_run : {"--set", "--engines", "--topology", "--device-type", "--replicas",
                                     "--cross-device-ops", "--steps", "--tries", "--all", "--details"}) {
    other->excludes(command->get_option(of_a_run));
  }
  command->callback([flags, &action] {
    action = [flags] { return flags->other.empty() ? compare_engines(*flags) : compare_stored(*flags); };
  });
}

}  // namespace tandem
