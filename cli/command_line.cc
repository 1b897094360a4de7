#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "cli/base/command.h"
#include "cli/base/error_format.h"
#include "cli/base/exit_codes.h"
#include "cli/base/interrupt.h"
#include "cli/base/outcome.h"
#include "cli/base/usage.h"
#include "engine/launched_job.h"
#include "reports/run/report.h"

namespace tandem {
namespace {

constexpr std::string_view kBisect = "--bisect";
constexpr std::array<std::string_view, 3> kSpread = {"calibrate", "compare", "run"};

}  // namespace

int run_command_line(int argc, char** argv) {
  handle_signals();
  open_standard_streams();
  choose_error_format(argc, argv);
  CLI::App app("Run a distribution strategy on real devices and on a simulated cluster, and compare", "tandem");
  app.footer(
      "Exit codes: 0 ok, 1 regression or expectation not met, 2 usage, 3 invalid input, 4 not available,\n"
      "5 run failed, 6 inconclusive, 125 cannot be judged (check --bisect), 130 interrupted.");
  bool version = false;
  bool json = false;
  app.add_flag("-V,--version", version, "Print the versions of tandem and of its libraries");
  app.add_flag("--json", json, "With --version: as one JSON document");
  add_errors_option(app);
  app.require_subcommand(0, 1);  // what follows a command is never another one: `tandem help run`
  Action action;
  for (const auto add :
       {add_run, add_compare, add_calibrate, add_check, add_help, add_history, add_collectives, add_import, add_plan,
        add_blame, add_report, add_sweep, add_schema, add_topology, add_validate, add_manual}) {
    add(app, action);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = run_to_exit_code([&] { return report_parse_error(app, error); });
    // Not 2, which `git bisect run` takes as bad.
    const bool is_bisecting = std::any_of(argv, argv + argc, [](const char* word) { return word == kBisect; });
    return code != kOk && is_bisecting ? kCannotBeJudged : code;
  }
  if (version) action = [json] { return print_version(json); };
  if (!action) return report_missing_command(app);
  const auto chosen = app.get_subcommands();
  const bool spreads = !chosen.empty() && std::count(kSpread.begin(), kSpread.end(), chosen.front()->get_name()) > 0;
  if (!chosen.empty() && !spreads) {
    refuse_jobs(
        "of the subcommands, only `tandem run`, `tandem compare` and `tandem calibrate` spread over processes, "
        "not `tandem " +
        chosen.front()->get_name() + "`");
  }
  if (!chosen.empty()) set_purpose(fmt::format("tandem {} {}", tandem::version(), chosen.front()->get_name()));
  return run_to_exit_code([&] {
    // An interrupted mpirun sends SIGTERM to the ranks, which end their job together.
    std::optional<OrderlyEnd> together;
    if (spreads && rank_of_process().count > 1) together.emplace();
    return action();
  });
}

}  // namespace tandem
