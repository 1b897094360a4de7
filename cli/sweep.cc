#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/base/command.h"
#include "cli/base/exit_codes.h"
#include "cli/base/load.h"
#include "cli/base/output.h"
#include "cli/base/phase.h"
#include "cli/base/progress_line.h"
#include "cli/base/ranks.h"
#include "reports/sweep/sweep_json.h"
#include "scenarios/sweep/sweep.h"
#include "topologies/base/shown.h"

namespace tandem {
namespace {

struct SweepFlags {
  CommonOptions common;
  std::string scenario;
  std::vector<std::string> settings{};  // --set
  std::string results;                  // empty: in the working folder, named after the scenario
  bool no_results = false;
  std::vector<std::string> merge;
  int processes = 0;
  double wait_s = 600;
  std::string csv;
  bool all = false;
  bool dry_run = false;
};

std::filesystem::path results_of(const SweepFlags& flags) {
  if (flags.no_results) return {};
  if (!flags.results.empty()) return flags.results;
  const std::string name = is_standard_input(flags.scenario) ? "stdin" : flags.scenario;
  return std::filesystem::path(name).stem().string() + ".sweep.jsonl";
}

using TextOfSweep = std::string (*)(const SweepTable& table, bool all);

void print_sweep(const Output& output, const SweepFlags& flags, const SweepTable& table,
                 TextOfSweep text = sweep_text) {
  if (!flags.csv.empty()) write_file(flags.csv, sweep_csv(table));
  if (output.json()) {
    output.write_json(sweep_to_json(table));
  } else {
    output.write_text(text(table, flags.all));
  }
  if (output.wants_page()) output.write_page(sweep_to_json(table));
}

// Shows the points and what they are expected to cost, without having run them.
void print_plan(const Output& output, const SweepFlags& flags, const Scenario& scenario, SweepTable& table) {
  estimate_points(scenario, table);
  print_sweep(output, flags, table, sweep_plan_text);
}

void print_note(const std::string& text) {
  std::cerr << "tandem: " << shown_output(text) << std::endl;
}

// Shows the finished points, whatever ended the sweep.
void print_unfinished(const Output& output, const SweepFlags& flags, const SweepTable& table) {
  const int left = table.count(PointState::not_run);
  if (left == static_cast<int>(table.points.size())) return;
  print_sweep(output, flags, table);
  const std::string file = results_of(flags).string();
  if (!file.empty())
    print_note(fmt::format("{} points are left; {} has the others, and the same command goes on", left, file));
}

int exit_code_of(const SweepTable& table) {
  if (const int lost = table.count(PointState::lost); lost > 0) {
    print_note(
        fmt::format("{} point{} again", lost,
                    lost == 1 ? " was lost; the same command runs it" : "s were lost; the same command runs them"));
    return kRunFailed;
  }
  if (table.count(PointState::done) > 0 || table.count(PointState::not_run) > 0) return kOk;
  print_note("no point of the sweep could run");
  return kRunFailed;
}

int sweep(const SweepFlags& flags, const Rank& rank) {
  const bool is_first = rank.index == 0;
  const Output output(flags.common);
  if (is_first && !flags.csv.empty()) check_writable(flags.csv);
  const Scenario scenario = scenario_from(flags.scenario, flags.settings);
  SweepTable table = swept_points(scenario);
  if (flags.dry_run) {
    if (is_first) print_plan(output, flags, scenario, table);
    return kOk;
  }
  ProgressLine line(flags.common);
  SweepOptions options{.processes = flags.processes,
                       .results = results_of(flags),
                       .merge = {flags.merge.begin(), flags.merge.end()},
                       .rank = rank,
                       .wait_s = flags.wait_s,
                       .progress = line.of_points(scenario.name),
                       .note = print_note};
  try {
    const Phase phase("run the points of " + scenario.name);
    run_sweep(scenario, options, table);
  } catch (...) {
    line.finish();
    if (is_first) print_unfinished(output, flags, table);
    throw;
  }
  line.finish();
  if (!is_first) return kOk;
  print_sweep(output, flags, table);
  return exit_code_of(table);
}

}  // namespace

void add_sweep(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("sweep", "Run a scenario with every combination of values in its `sweep:`");
  auto flags = std::make_shared<SweepFlags>();
  command->add_option("scenario", flags->scenario, "The scenario file; - is the standard input")->required();
  add_set_option(*command, flags->settings);
  CLI::Option* results =
      command->add_option("--results", flags->results,
                          "Keep finished points in this file (default: the scenario's name with .sweep.jsonl)");
  command->add_flag("--no-results", flags->no_results, "Keep no finished points")->excludes(results);
  command->add_option("--merge", flags->merge, "Take finished points from these files, too");
  command->add_option("-j,--jobs", flags->processes, "Points that run at the same time (default: one a processor)")
      ->check(CLI::Range(1, 4096));
  add_wait_option(*command, flags->wait_s);
  command->add_option("--csv", flags->csv, "Write every point to this file, as CSV");
  command->add_flag("--all", flags->all, "Show every point, however many there are");
  command->add_flag("--dry-run", flags->dry_run,
                    "List the points with estimates of their CPU time and memory, without running them");
  add_common_options(*command, flags->common);
  add_page_option(*command, flags->common);
  command->callback([flags, &action] {
    action = [flags] { return on_this_rank([flags](const Rank& rank) { return sweep(*flags, rank); }); };
  });
}

}  // namespace tandem
