#include "cli/check/launched_report.h"

#include <fmt/format.h>

#include <filesystem>

#include "cli/base/exit_codes.h"
#include "cli/base/launch.h"
#include "cli/base/load.h"
#include "reports/run/report_json.h"
#include "scenarios/run/resumption.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

std::string last_line_of(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

std::string failure_of(const Launched& launched, const LaunchResult& result) {
  const std::string how = result.signal.empty() ? fmt::format("ended with exit code {}", result.exit_code)
                                                : "was ended by " + result.signal;
  std::string text = fmt::format("{} {}", launched.name(), how);
  if (const std::string line = last_line_of(result.error); !line.empty()) text += ": " + line;
  if (result.exit_code == kUsage) text += " (is it an older Tandem? It must take `run SCENARIO --json --quiet`)";
  return text;
}

// A report that lacks something is most likely that of an older program.
Report report_of(const Launched& launched, const std::string& output) {
  try {
    return report_from_json(output, launched.name());
  } catch (const InputError& error) {
    std::vector<Diagnostic> diagnostics = error.diagnostics();
    diagnostics.push_back({.file = launched.name(),
                           .path = "",
                           .message = fmt::format("prints no report that Tandem {} reads; is it an older Tandem, or "
                                                  "another program?",
                                                  version())});
    throw InputError(std::move(diagnostics));
  }
}

}  // namespace

std::string Launched::name() const {
  return fmt::format("launch {} ({})", number, program);
}

std::string this_program() {
  return std::filesystem::read_symlink("/proc/self/exe").string();
}

Report launched_report(const Launched& launched) {
  refuse_interrupted(scenario_from(launched.scenario, launched.settings));
  std::vector<std::string> command = {launched.program, "run", launched.scenario, "--json", "--quiet"};
  for (const std::string& setting : launched.settings) command.insert(command.end(), {"--set", setting});
  const LaunchResult result = launch(command, launched.timeout_s);
  // A run that misses an expectation has its report all the same.
  const bool has_report = result.exit_code == kOk || (result.exit_code == kNotMet && !result.output.empty());
  if (!has_report) throw RunError(failure_of(launched, result));
  Report report = report_of(launched, result.output);
  if (report.deterministic) {
    throw InputError({{.file = launched.scenario,
                       .path = "engine",
                       .message = "its times repeat exactly, and one run decides: use --baseline"}});
  }
  return report;
}

}  // namespace tandem
