#include <CLI/CLI.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/base/command.h"
#include "cli/base/exit_codes.h"
#include "cli/base/output.h"
#include "reports/checks/history.h"
#include "reports/pages/page.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

struct HistoryFlags {
  CommonOptions common;
  std::string file;
  std::string scenario;  // a name; empty: all
  double margin = kMeasuredTolerance;
};

[[noreturn]] void nothing_to_show(const HistoryFlags& flags, std::string message) {
  throw InputError({problem_at(flags.file, kBeginning, std::move(message))});
}

int show_history(const HistoryFlags& flags) {
  const Output output(flags.common);
  if (!std::filesystem::exists(flags.file)) {
    throw InputError({{.file = flags.file,
                       .path = "",
                       .message = "no such history; `tandem check SCENARIO --history FILE` begins one"}});
  }
  std::vector<HistoryLaunch> history = read_history(flags.file);
  if (history.empty()) nothing_to_show(flags, "has no launch; `tandem check SCENARIO --history FILE` adds one");
  if (!flags.scenario.empty()) {
    std::vector<std::string> names;
    for (const HistoryLaunch& launch : history) names.push_back(launch.scenario);
    std::erase_if(history, [&](const HistoryLaunch& launch) { return launch.scenario != flags.scenario; });
    if (history.empty()) {
      const std::string near = nearest_name(flags.scenario, names);
      nothing_to_show(
          flags, "has no launch of '" + flags.scenario + "'" + (near.empty() ? "" : "; did you mean '" + near + "'?"));
    }
  }
  std::vector<HistorySeries> series = series_of(std::move(history), flags.margin);
  if (output.json()) {
    output.write_json(history_to_json(series, flags.margin));
  } else {
    output.write_text(history_text(series, flags.margin));
  }
  if (!output.wants_page()) return kOk;
  // The document of 10^6 launches would take a gigabyte.
  for (HistorySeries& one : series) one = last_of(one, kMostLaunchesOfPage);
  output.write_page(history_to_json(series, flags.margin));
  return kOk;
}

}  // namespace

void add_history(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "history", "Show the launches that `tandem check --history` has kept, and where times changed");
  auto flags = std::make_shared<HistoryFlags>();
  command->add_option("file", flags->file, "The file of JSON lines")->required();
  command->add_option("--scenario", flags->scenario, "The launches of the scenario of this name (default: all)");
  add_margin_option(*command, flags->margin);
  add_common_options(*command, flags->common);
  add_page_option(*command, flags->common);
  command->callback([flags, &action] { action = [flags] { return show_history(*flags); }; });
}

}  // namespace tandem
