#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/base/command.h"
#include "cli/base/exit_codes.h"
#include "cli/base/expectations.h"
#include "cli/base/join.h"
#include "cli/base/load.h"
#include "cli/base/nccl_environment.h"
#include "cli/base/output.h"
#include "cli/base/page_document.h"
#include "cli/base/phase.h"
#include "cli/base/progress_line.h"
#include "cli/explore.h"
#include "engine/engine_info.h"
#include "reports/run/report_json.h"
#include "reports/run/report_text.h"
#include "reports/timeline/chrome_trace.h"
#include "scenarios/job/job.h"
#include "scenarios/reading/scenario_flags.h"
#include "scenarios/run/assumptions.h"
#include "scenarios/run/expected_run.h"
#include "scenarios/run/runner.h"
#include "scenarios/scenario/scenario_values.h"
#include "scenarios/scenario/words.h"

namespace tandem {
namespace {

constexpr std::string_view kWorkerMark = "{worker}";  // in a trace's file name: a file for each worker

std::string trace_file(const std::string& pattern, int worker) {
  std::string file = pattern;
  file.replace(file.find(kWorkerMark), kWorkerMark.size(), std::to_string(worker));
  return file;
}

void write_trace(const Timeline& timeline, const std::string& file, std::optional<int> worker) {
  write_file(file, [&](std::ostream& stream) { write_chrome_trace(timeline, stream, worker); });
}

void write_traces(const Timeline& timeline, const std::string& pattern) {
  if (pattern.empty()) return;
  if (pattern.find(kWorkerMark) == std::string::npos) return write_trace(timeline, pattern, std::nullopt);
  int workers = 0;
  for (const TimelineDevice& device : timeline.devices) workers = std::max(workers, device.worker + 1);
  std::set<int> simulated;  // empty: all of them
  for (const WorkerClass& one : timeline.classes) simulated.insert(one.representative);
  for (int worker = 0; worker < workers; ++worker) {
    if (!simulated.empty() && !simulated.contains(worker)) continue;
    write_trace(timeline, trace_file(pattern, worker), worker);
  }
}

// Throws before the run any error that write_traces() would throw after it.
void check_traces(const RunFlags& flags, const Scenario& scenario) {
  if (flags.trace.empty() || !reports_for_job()) return;
  if (flags.trace.find(kWorkerMark) == std::string::npos) return check_writable(flags.trace);
  const int workers = static_cast<int>(tasks_of(scenario).size());
  for (int worker = 0; worker < workers; ++worker) check_writable(trace_file(flags.trace, worker));
}

// Adds what moves a simulation most: as asked for, or else figures that state a range, where that is cheap.
void add_assumptions(RunResult& result, const Scenario& scenario, const RunFlags& flags) {
  Report& report = result.report;
  if (!flags.assumptions && !has_cheap_assumptions(scenario, result)) return;
  const Phase phase("assumptions of " + scenario.name);
  report.assumptions =
      assumptions_of(scenario, result, flags.assumptions ? FigureRanges::of_catalog : FigureRanges::stated);
  if (!flags.assumptions || !report.assumptions.empty()) return;
  report.notes.emplace_back(report.deterministic ? "no assumed figure of the machine moves the step by 0.1 %"
                                                 : "--assumptions has no effect: the run is measured");
}

int run(RunFlags flags) {
  // Before anything is read, so that a file that ranks cannot read is reported only once.
  join_processes(find_engine(flags.changes.engine));
  const Output output(flags.common);
  ProgressLine progress(flags.common);
  progress.begin(flags.scenario);
  const Scenario of_file = scenario_from(flags.scenario, flags.settings);
  if (flags.changes.engine.empty()) join_processes(find_engine(of_file.engine.name));
  flags.changes.topology = topology_from(flags.topology, flags.common, flags.import);
  const Scenario scenario = with_flags(of_file, flags.changes);
  check_traces(flags, scenario);
  flags.run.progress = progress.of_steps(scenario.name);
  flags.run.may_resume = true;
  flags.run.only_report = flags.trace.empty() && !flags.details && !output.wants_page();
  RunResult result = [&] {
    const Phase phase("run " + scenario.name);
    RunResult ended = run_scenario(scenario, flags.run);
    progress.finish();
    return ended;
  }();
  if (!reports_for_job()) return kOk;
  if (result.report.settings.contains("nccl") && result.report.deterministic && !flags.common.quiet) {
    std::cerr << unread_nccl_variables(process_environment(), scenario.engine.nccl);
  }
  add_expectation(result.report, of_file, flags.changes, flags.run);
  write_traces(result.timeline, flags.trace);
  add_assumptions(result, scenario, flags);
  const auto with_values = [&](nlohmann::ordered_json document) {
    if (const ScenarioValues values = scenario_values(of_file); !values.empty()) document[kScenarioValues] = values;
    return document;
  };
  if (output.json()) {
    output.write_json(with_values(flags.details ? with_details(result) : report_to_json(result.report)));
  } else {
    output.write_text(report_text(result.report, flags.all));
  }
  if (output.wants_page()) output.write_page(with_values(with_details(result)));
  return report_expectations(scenario.expect, result.report);
}

// Adds the options that take the place of the scenario's values, whose reader checks them.
void add_changes(CLI::App& command, RunFlags& flags) {
  ScenarioFlags& changes = flags.changes;
  command.add_option("--engine", changes.engine, "Run on this engine instead of the scenario's");
  CLI::Option* topology = command.add_option(
      "--topology", flags.topology,
      "Simulate this topology instead of the scenario's; beside a measurement, what the model expects");
  add_import_options(command, flags.import, topology);
  command.add_option("--replicas", changes.replicas, "Replicas of each worker")->type_name("INT");
  command
      .add_option("--device-type", changes.device_type,
                  "Run on devices of this type: cpu or gpu (default: the scenario's, or GPUs with an engine of GPUs)")
      ->check(one_of(names_of(device_type_words())));
  command.add_option("--workers", changes.workers, "Workers that train")->type_name("INT");
  command.add_option("--steps", changes.steps, "Steps, warm-up included")->type_name("INT");
  command.add_option("--cross-device-ops", changes.cross_device_ops, "How replicas reduce their gradients")
      ->check(known_cross_device_ops());
  command.add_option("--values", changes.values, "Whether tensors hold values: real or none")
      ->check(one_of(names_of(value_words())));
  command.add_option("--collectives", changes.collectives, "Fidelity of simulated collectives: fluid or message")
      ->check(one_of(names_of(fidelity_words())));
  add_nccl_option(command, changes.nccl);
  command.add_flag("!--no-symmetry", changes.symmetry, "Simulate every worker, even those that do the same as others");
  command.add_flag("!--no-steady-state", changes.steady_state,
                   "Simulate every micro-batch, even those that repeat others");
  command.add_flag("--graphs", changes.graphs, "Launch ops that come again as one CUDA graph");
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("run", "Run a scenario and report its step time and where it went");
  auto flags = std::make_shared<RunFlags>();
  command->add_option("scenario", flags->scenario, "The scenario file; - is the standard input")->required();
  add_set_option(*command, flags->settings);
  add_changes(*command, *flags);
  CLI::Option* trace = command->add_option(
      "--trace", flags->trace, "Write a Chrome trace to this file; with {worker} in its name, one for each worker");
  command
      ->add_option("--schedule-seed", flags->run.schedule_seed,
                   "Run tasks that are ready at one instant in the order of this seed")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--explore", flags->explore,
                   "Run under so many seeds, from --schedule-seed (default: 1) on; values must not depend on it")
      ->check(CLI::Range(1, 1 << 30))
      ->excludes(trace);
  command->add_flag("--all", flags->all, "Show every collective, however many there are");
  command->add_flag("--inject", flags->run.injects_faults,
                    "On a real engine: make the scenario's faults happen, which are else refused");
  command
      ->add_flag("--assumptions", flags->assumptions,
                 "Of a simulation: which of all assumed figures of the machine move the step most, and by how "
                 "much; without it, figures with a stated range, where that takes little time")
      ->excludes(command->get_option("--explore"));
  CLI::Option* details = command->add_flag(
      "--details", flags->details, "With --json: also what pictures need, so that `report` writes the same page");
  add_common_options(*command, flags->common);
  details->needs(command->get_option("--json"))->excludes(command->get_option("--explore"));
  add_page_option(*command, flags->common);
  command->callback([flags, &action] { action = [flags] { return flags->explore ? explore(*flags) : run(*flags); }; });
}

}  // namespace tandem
