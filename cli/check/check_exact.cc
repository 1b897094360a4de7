#include "cli/check/check_exact.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/base/exit_codes.h"
#include "cli/base/expectations.h"
#include "cli/base/load.h"
#include "cli/base/output.h"
#include "cli/base/phase.h"
#include "cli/base/stored_run.h"
#include "cli/check/check_history.h"
#include "cli/check/program_hash.h"
#include "cli/check/verdicts.h"
#include "reports/base/json_fields.h"
#include "reports/run/report_json.h"
#include "reports/run/report_text.h"
#include "scenarios/import/shell/quoted_word.h"
#include "scenarios/run/runner.h"
#include "scenarios/scenario/fnv1a.h"
#include "scenarios/scenario/scenario_values.h"
#include "topologies/base/shown.h"
#include "topologies/base/strict_yaml.h"

namespace tandem {
namespace {

// Hashes the program, the scenario with its topology, and the report. Returns nothing if a second run may give other
// times.
std::string inputs_hash(const Scenario& scenario, const Report& report) {
  const std::string program = program_hash();
  if (!report.deterministic || !scenario.topology || program.empty()) return "";
  Fnv1a hash;
  hash.add(program);
  hash.add(scenario.hash);
  hash.add(json_text(report_to_json(report)));
  return hash.text();
}

StoredRun load_golden(const std::string& file) {
  if (!std::filesystem::exists(file)) {
    throw InputError({{.file = file, .path = "", .message = "no such baseline; --update stores this run as one"}});
  }
  StoredRun golden = stored_run(file);
  // Faults of a simulation are its scenario's; on a machine they are injected, or the run was interrupted and resumed.
  if (!golden.report.deterministic && !golden.report.faults.empty()) {
    throw InputError({{.file = file,
                       .path = "faults",
                       .message = fmt::format("a run with faults ({}) is no baseline; --update stores this run as one",
                                              golden.report.faults.front())}});
  }
  return golden;
}

Report run_for_check(const CheckFlags& flags, const Scenario& scenario, ProgressLine& progress) {
  RunOptions options{.only_report = true};
  options.progress = progress.of_steps(scenario.name);
  const Phase phase("run " + scenario.name);
  Report report = run_scenario(scenario, options).report;
  for (int attempt = 1; attempt < flags.tries && report.is_disturbed(); ++attempt) {
    report = run_scenario(scenario, options).report;
  }
  progress.finish();
  return report;
}

CheckedScenario judged(const Scenario& scenario, const Report& report) {
  return {.file = scenario.file,
          .name = report.scenario,
          .mode = report.deterministic ? "exact" : "stored",
          .state = CheckState::judged};
}

CheckedScenario store_golden(const CheckFlags& flags, const Scenario& scenario, const std::string& baseline,
                             ProgressLine& progress) {
  check_writable(baseline);
  const Report report = run_for_check(flags, scenario, progress);
  JsonField::Json document = report_to_json(report);
  if (const std::string hash = flags.always ? "" : inputs_hash(scenario, report); !hash.empty()) {
    document[kInputsHash] = hash;
  }
  if (const ScenarioValues values = scenario_values(scenario); !values.empty()) document[kScenarioValues] = values;
  write_file(baseline, json_text(document));
  CheckedScenario checked = judged(scenario, report);
  checked.verdict = Verdict::ok;
  checked.reason = "stored in " + baseline;
  if (report.is_disturbed()) {
    checked.reason += fmt::format("; it was disturbed ({}), and no standard for later runs: store it again later",
                                  lost_text(*report.machine_use));
  }
  checked.step_time = report.summary.step_time.mean;
  checked.samples = report.summary.step_time.samples;
  checked.report = std::make_shared<Report>(report);
  checked.text = fmt::format("{}: {}\n", title_of(report), checked.reason);
  checked.document = std::make_shared<JsonField::Json>(std::move(document));
  add_unmet(unmet_expectations(scenario.expect, report), checked);
  return checked;
}

// Simulations are equal or not: a faster one is also a difference, until it is stored.
int code_of(const CheckResult& result, const Report& report) {
  const bool is_exact = report.deterministic && result.verdict == Verdict::improved;
  return is_exact ? static_cast<int>(kNotMet) : exit_code_of(result.verdict);
}

// "the baseline is of another job: the engine is ...; per_step.compute changed most ..."
std::string reasons_text(const CheckResult& result) {
  std::string text;
  for (const std::string& reason : result.reasons) {
    text += (text.empty() ? "" : text.ends_with(':') ? " " : "; ") + reason;
  }
  return text;
}

CheckedScenario checked_by(const CheckResult& result, const Report& report, const Report& baseline,
                           const Scenario& scenario) {
  CheckedScenario checked = judged(scenario, report);
  checked.verdict = result.verdict;
  checked.exit_code = code_of(result, report);
  checked.cannot_be_judged = result.is_of_another_job && result.verdict == Verdict::model_changed;
  checked.reason = reasons_text(result);
  checked.accept = result.accept;
  checked.step_time = report.summary.step_time.*result.figure;
  checked.reference = baseline.summary.step_time.*result.figure;
  checked.change = result.change;
  checked.samples = report.summary.step_time.samples;
  checked.report = std::make_shared<Report>(report);
  checked.text = check_text(result, report, baseline);
  checked.document = std::make_shared<JsonField::Json>(check_to_json(result, report, baseline));
  return checked;
}

// Returns the command that stores this run, with those options that decide what is run and stored.
std::string accepting_command(const CheckFlags& flags, const char* option, const std::string& file,
                              const Scenario& scenario) {
  const std::string& target = is_standard_input(flags.target) ? flags.target : scenario.file;
  std::string command = fmt::format("tandem check {} {} {}", shell_word(target), option, shell_word(file));
  for (const std::string& setting : flags.settings) command += " --set " + shell_word(setting);
  if (flags.always) command += " --always";
  return command + " --update";
}

}  // namespace

CheckedScenario check_exact(const CheckFlags& flags, const Scenario& scenario, const std::string& baseline,
                            ProgressLine& progress) {
  if (flags.update) return store_golden(flags, scenario, baseline, progress);
  const StoredRun golden = load_golden(baseline);
  const bool is_unchanged = !flags.always && !golden.inputs_hash.empty() &&
                            golden.report.scenario_hash == scenario.hash &&
                            golden.inputs_hash == inputs_hash(scenario, golden.report);
  const Report report = is_unchanged ? golden.report : run_for_check(flags, scenario, progress);
  const StoredRun now{.report = report, .values = scenario_values(scenario)};
  CheckResult result = check(report, golden.report, flags.limits, content_changes(now, golden));
  if (is_unchanged) {
    result.reasons.insert(result.reasons.begin(), "not run: program, scenario and topology are the baseline's");
  }
  const bool is_change = result.is_of_another_job || result.counts_differ || result.verdict == Verdict::model_changed ||
                         (report.deterministic && result.verdict != Verdict::ok && !result.differences.empty());
  if (is_change) result.accept = accepting_command(flags, "--baseline", baseline, scenario);
  CheckedScenario checked = checked_by(result, report, golden.report, scenario);
  add_unmet(unmet_expectations(scenario.expect, report), checked);
  return checked;
}

CheckedScenario check_exact_history(const CheckFlags& flags, const Scenario& scenario,
                                    std::span<const HistoryLaunch> history, ProgressLine& progress) {
  const Report report = run_for_check(flags, scenario, progress);
  HistoryResult result = judge_exact(history, history_launch(report, commit_of(flags), utc_date()));
  if (flags.update && result.verdict != Verdict::ok) accept(result);
  CheckedScenario checked = checked_by(result, {}, scenario.file);
  if (result.verdict == Verdict::improved) checked.exit_code = kNotMet;  // a difference until it is accepted
  if (!flags.update && checked.exit_code == kNotMet) {
    checked.accept = accepting_command(flags, "--history", flags.history, scenario);
    checked.text += fmt::format("to accept it: {}\n", shown(checked.accept));
  }
  checked.report = std::make_shared<Report>(report);
  add_unmet(unmet_expectations(scenario.expect, report), checked);
  return checked;
}

}  // namespace tandem
