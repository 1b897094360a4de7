#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/expectations.h"
#include "cli/load.h"
#include "cli/output.h"
#include "cli/progress_line.h"
#include "reports/check.h"
#include "reports/report_json.h"
#include "reports/report_text.h"
#include "scenarios/runner.h"
#include "topologies/base/error.h"
#include "topologies/base/units.h"

namespace tandem {
namespace {

struct CheckFlags {
  CommonOptions common;
  std::string scenario;
  std::string baseline;
  bool update = false;
  CheckLimits limits;
};

// Reads "5%" or "0.05", but not "5", which could mean either 5 % or 500 %.
std::optional<double> parse_tolerance(std::string_view text) {
  const bool percent = text.ends_with('%');
  if (percent) text.remove_suffix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  if (value < 0 || (!percent && value >= 1)) return std::nullopt;
  return percent ? value / 100 : value;
}

int exit_code_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::ok:
    case Verdict::improved:
      return kOk;
    case Verdict::regressed:
    case Verdict::model_changed:
      return kNotMet;
    case Verdict::inconclusive:
      return kInconclusive;
  }
  TANDEM_UNREACHABLE("a verdict without an exit code");
}

Color color_of(Verdict verdict) {
  const int code = exit_code_of(verdict);
  return code == kOk ? Color::green : code == kNotMet ? Color::red : Color::yellow;
}

// Returns check_text() with a colored verdict if stdout is a terminal.
std::string shown_text(const CheckFlags& flags, const CheckResult& result, const Report& report,
                       const Report& baseline) {
  std::string text = check_text(result, report, baseline);
  if (!flags.common.output.empty()) return text;
  const std::string verdict(name_of(result.verdict));
  const std::size_t at = text.find(": " + verdict + "\n");
  if (at == std::string::npos) return text;
  return text.replace(at + 2, verdict.size(),
                      colored(verdict, color_of(result.verdict), std::cout, flags.common.no_color));
}

Report load_baseline(const std::string& file) {
  if (!std::filesystem::exists(file)) {
    throw InputError({{.file = file, .path = "", .message = "no such baseline; --update stores this run as one"}});
  }
  return load_report(file);
}

Report run_quietly(const CheckFlags& flags, const Scenario& scenario) {
  ProgressLine progress(flags.common);
  RunOptions options;
  options.progress = progress.of_steps(scenario.name);
  Report report = run_scenario(scenario, options).report;
  progress.finish();
  return report;
}

int update_baseline(const CheckFlags& flags, const Scenario& scenario) {
  check_writable(flags.baseline);
  const Report report = run_quietly(flags, scenario);
  write_file(flags.baseline, json_text(report_to_json(report)));
  const Output output(flags.common);
  if (output.json()) {
    output.write_json(report_to_json(report));
  } else {
    output.write_text(fmt::format("{}: stored in {}\n", title_of(report), flags.baseline));
  }
  return report_expectations(scenario.expect, report);
}

int check_scenario(const CheckFlags& flags) {
  const Output output(flags.common);
  const Scenario scenario = scenario_from(flags.scenario);
  if (flags.update) return update_baseline(flags, scenario);
  const Report baseline = load_baseline(flags.baseline);
  const Report report = run_quietly(flags, scenario);
  const CheckResult result = check(report, baseline, flags.limits);
  if (output.json()) {
    output.write_json(check_to_json(result, report, baseline));
  } else {
    output.write_text(shown_text(flags, result, report, baseline));
  }
  const int expectations = report_expectations(scenario.expect, report);
  const int verdict = exit_code_of(result.verdict);
  return expectations == kOk ? verdict : expectations;
}

}  // namespace

void add_check(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("check", "Run a scenario and compare its timings with a stored baseline");
  auto flags = std::make_shared<CheckFlags>();
  command->add_option("scenario", flags->scenario, "The scenario file")->required();
  command->add_option("--baseline", flags->baseline, "A report, as `tandem run --json` or --update writes it")
      ->required();
  command->add_flag("--update", flags->update, "Store this run as the baseline");
  command->add_option_function<std::string>(
      "--tolerance",
      [flags](const std::string& text) {
        flags->limits.tolerance = parse_tolerance(text);
        if (!flags->limits.tolerance) {
          throw CLI::ValidationError("--tolerance", "expected a percentage such as 5%, found '" + text + "'");
        }
      },
      "Change of the step time to accept (default: 3% of measured times, none of simulated ones)");
  command->add_option_function<std::string>(
      "--max-step-time",
      [flags](const std::string& text) {
        const auto seconds = parse_quantity(text, Dimension::seconds);
        if (!seconds || *seconds <= 0) {
          throw CLI::ValidationError("--max-step-time",
                                     fmt::format("{}, found '{}'", expectation(Dimension::seconds), text));
        }
        flags->limits.max_step_time_ns = static_cast<Nanoseconds>(*seconds * 1e9);
      },
      "A budget for the median step time, such as 12.5ms");
  add_common_options(*command, flags->common);
  command->callback([flags, &action] { action = [flags] { return check_scenario(*flags); }; });
}

}  // namespace tandem
