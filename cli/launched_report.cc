#include "cli/launched_report.h"

#include <fmt/format.h>

#include <filesystem>

#include "cli/exit_codes.h"
#include "cli/launch.h"
#include "reports/report_json.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

std::string last_line_of(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace

std::string Launched::name() const {
  return fmt::format("launch {} ({})", number, program);
}

std::string this_program() {
  return std::filesystem::read_symlink("/proc/self/exe").string();
}

Report launched_report(const Launched& launched) {
  const LaunchResult result =
      launch({launched.program, "run", launched.scenario, "--json", "--quiet"}, launched.timeout_s);
  // A run that misses an expectation has its report all the same.
  const bool has_report = result.exit_code == kOk || (result.exit_code == kNotMet && !result.output.empty());
  if (!has_report) {
    throw RunError(
        fmt::format("{} ended with exit code {}: {}", launched.name(), result.exit_code, last_line_of(result.error)));
  }
  Report report = report_from_json(result.output, launched.name());
  if (report.deterministic) {
    throw InputError({{.file = launched.scenario,
                       .path = "engine",
                       .message = "its times repeat exactly, and one run decides: use --baseline"}});
  }
  return report;
}

}  // namespace tandem
