#include "scenarios/plan/plan.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
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
#include "cli/job_form.h"
#include "cli/plan/plan_scenario.h"
#include "reports/plan/plan_json.h"
#include "scenarios/plan/point_text.h"
#include "scenarios/plan/what_if.h"
#include "topologies/base/shown.h"
#include "topologies/base/units.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

struct PlanFlags {
  CommonOptions common;
  PlanQuestion question;
  std::string results;  // empty: none are kept
  std::string goal = "time";
  std::string scenario_file;        // --scenario
  std::string format = "scenario";  // of that file
  std::vector<std::string> what_if{};
  int processes = 0;
  int wanted = 5;
  std::optional<double> within_s{};
  double wait_s = 600;
  bool dry_run = false;
};

std::function<void(const PlanProgress&)> progress_of(std::function<void(std::string_view, int, int)> of_stages) {
  return [of_stages = std::move(of_stages)](const PlanProgress& progress) {
    std::string stage = progress.stage;
    if (std::isfinite(progress.gap)) stage += fmt::format(", {:.1f} % from the least possible", 100 * progress.gap);
    of_stages(stage + ": point", progress.done, progress.of);
  };
}

void print_plan(const Output& output, const PlanTable& table) {
  if (output.json()) {
    output.write_json(plan_to_json(table));
  } else {
    output.write_text(plan_text(table));
  }
  if (output.wants_page()) output.write_page(plan_to_json(table));
}

// Writes the best point, as a scenario or as a job of another program.
void write_best(const PlanFlags& flags, const ScenarioToPlan& asked, const PlanTable& table) {
  const Scenario& scenario = asked.scenario;
  const std::vector<std::size_t> ranks = table.ranking();
  if (flags.scenario_file.empty() || ranks.empty()) return;
  const std::optional<JobForm> form = job_form(flags.format);
  if (form) {
    write_job(scenario_of_point(scenario, ranks.front()), asked.origins, *form, flags.scenario_file, flags.common);
  } else {
    write_file(flags.scenario_file,
               text_of_point(scenario, ranks.front(), fs::absolute(flags.scenario_file).parent_path()));
  }
}

// Costs and energies are those of machines, of which the scenario must state the price or power.
void check_goal(PlanGoal goal, const Scenario& scenario, const std::vector<std::string>& fields) {
  if (goal == PlanGoal::time) return;
  const auto is_of_topology = [](const std::string& field) { return field.starts_with("topology"); };
  if (std::ranges::any_of(fields, is_of_topology)) return;
  const bool is_cost = goal == PlanGoal::cost;
  if (scenario.topology) {
    const MachineFacts& facts = scenario.topology->facts();
    if (is_cost ? facts.price.has_value() : facts.power_w.has_value()) return;
  }
  throw InputError({scenario.problem_at(
      "topology",
      fmt::format("states no {0} of its machines, without which --for {1} compares nothing; such as `{0}: {2}`",
                  is_cost ? "price" : "power", name_of(goal), is_cost ? "98 $/h" : "10.2kW"))});
}

// Plans once more for each change of --what-if.
void plan_what_ifs(const std::vector<WhatIf>& changes, const Scenario& scenario, PlanOptions options,
                   ProgressLine& line, PlanTable& table) {
  options.wanted = 1;
  options.has_usual = false;
  options.results.clear();
  options.rank = {};  // the first one, alone
  const auto plan = [&](const WhatIf& change, const Scenario& changed) {
    options.progress = progress_of(line.of_stages(fmt::format("{}, with {}", scenario.name, change.change)));
    PlanTable other = planned_points(changed, options);
    run_plan(changed, options, other);
    return other;
  };
  add_what_ifs(changes, scenario, plan, table);
}

PlanGoal goal_named(const std::string& name) {
  for (const PlanGoal goal : {PlanGoal::cost, PlanGoal::energy}) {
    if (name == name_of(goal)) return goal;
  }
  return PlanGoal::time;
}

// The first of several ranks prints the answer, and what there is to say.
int plan(const PlanFlags& flags, const Rank& rank) {
  if (rank.count > 1 && flags.results.empty() && !flags.dry_run)
    refuse_option("--results", "is missing: ranks that search together share a file of results");
  const bool is_first = rank.index == 0;
  CommonOptions common = flags.common;
  common.quiet = common.quiet || !is_first;
  const Output output(common);
  if (is_first && !flags.scenario_file.empty()) check_writable(flags.scenario_file);
  const ScenarioToPlan asked = scenario_to_plan(flags.question, common);
  const Scenario& scenario = asked.scenario;
  PlanOptions options{.processes = flags.processes,
                      .within_s = flags.within_s,
                      .wanted = static_cast<std::size_t>(flags.wanted),
                      .goal = goal_named(flags.goal),
                      .has_usual = asked.has_own_strategy,
                      .results = flags.results,
                      .rank = rank,
                      .wait_s = flags.wait_s};
  if (is_first) options.note = [](const std::string& text) { std::cerr << "tandem: " << shown_output(text) << '\n'; };
  PlanTable table = planned_points(scenario, options);
  check_goal(options.goal, scenario, table.sweep.fields);
  const std::vector<WhatIf> changes = what_ifs(flags.what_if, scenario);
  if (flags.dry_run) {
    if (is_first) output.write_text(space_text(scenario) + fmt::format("# {} points\n", table.sweep.points.size()));
    return kOk;
  }
  ProgressLine line(common);
  options.progress = progress_of(line.of_stages(scenario.name));
  try {
    const Phase phase("plan " + scenario.name);
    run_plan(scenario, options, table);
    if (is_first) plan_what_ifs(changes, scenario, options, line, table);
  } catch (...) {
    line.finish();
    if (is_first && !table.ranking().empty()) print_plan(output, table);
    throw;
  }
  line.finish();
  if (!is_first) return kOk;
  print_plan(output, table);
  write_best(flags, asked, table);
  return table.ranking().empty() || table.sweep.count(PointState::lost) > 0 ? kRunFailed : kOk;
}

}  // namespace

void add_plan(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("plan", "Find the fastest or cheapest way to train a model, and how sure that is");
  auto flags = std::make_shared<PlanFlags>();
  PlanQuestion& question = flags->question;
  command
      ->add_option("model", question.file,
                   "A scenario, whose `sweep:` is searched if it has one, or a file that `tandem import` reads")
      ->required();
  add_set_option(*command, question.settings);
  command
      ->add_option("--topology", question.topologies,
                   "A machine of the catalog, or a topology file; or several to choose from")
      ->delimiter(',');
  command->add_option("--devices", question.devices,
                      "Devices, 512, or a range, 64..512: 64, and twice as many while in the range");
  command->add_option("--batch", question.batch, "Examples of a step, of all replicas together")
      ->check(CLI::Range(1, 1 << 28));
  command->add_option("--precision", question.precision, "To what the operands of dense layers are quantised")
      ->check(CLI::IsMember({"fp8", "mxfp8", "nvfp4"}));
  command->add_option("--sequence-length", question.tokens, "Tokens of a sequence, of a file that is imported")
      ->check(CLI::Range(1, 1 << 24));
  command->add_option("--strategies", question.strategies, "Strategies to choose from (default: all that may run)")
      ->delimiter(',');
  CLI::Option* space = command->add_option("--space", question.space, "A file whose `sweep:` is searched");
  command
      ->add_flag("--usual-space", question.usual_space, "Search the usual space, although the scenario has a `sweep:`")
      ->excludes(space);
  command->add_option("--for", flags->goal, "What to make least of")->check(CLI::IsMember({"time", "cost", "energy"}));
  command->add_option("--within", flags->within_s, "Seconds after which the search ends with what is known")
      ->check(number_within(0, limits_of(Dimension::seconds).most));
  command->add_option("--best", flags->wanted, "How many points are to be the best ones for certain")
      ->check(CLI::Range(1, 1000));
  command
      ->add_option("--what-if", flags->what_if,
                   "Plan again with memory (1 GB more), network, nvlink (twice as fast), machine (these three), or "
                   "KEY=VALUE; may be repeated")
      ->allow_extra_args(false);
  CLI::Option* file =
      command->add_option("--scenario", flags->scenario_file, "Write the scenario of the best point to this file");
  add_format_option(*command, flags->format, "What that file is: a scenario, or a job of another program")->needs(file);
  command->add_option("--results", flags->results, "Keep what is known of points in this file, and begin with that");
  add_wait_option(*command, flags->wait_s);
  command->add_option("-j,--jobs", flags->processes, "Processes that search (default: one a processor)")
      ->check(CLI::Range(1, 4096));
  command->add_flag("--dry-run", flags->dry_run, "Show the space, without searching it");
  add_common_options(*command, flags->common);
  add_page_option(*command, flags->common);
  command->callback([flags, &action] {
    action = [flags] { return on_this_rank([flags](const Rank& rank) { return plan(*flags, rank); }); };
  });
}

}  // namespace tandem
