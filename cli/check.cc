#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/check_pairs.h"
#include "cli/command.h"
#include "cli/exit_codes.h"
#include "cli/expectations.h"
#include "cli/load.h"
#include "cli/output.h"
#include "cli/progress_line.h"
#include "cli/verdicts.h"
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
  PairFlags pairs;
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

double seconds_of(const char* option, const std::string& text) {
  const auto seconds = parse_quantity(text, Dimension::seconds);
  if (seconds && *seconds > 0) return *seconds;
  throw CLI::ValidationError(option, fmt::format("{}, found '{}'", expectation(Dimension::seconds), text));
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
  if (!flags.pairs.program.empty()) return check_pairs(flags.common, flags.scenario, flags.pairs);
  const Output output(flags.common);
  const Scenario scenario = scenario_from(flags.scenario);
  if (flags.update) return update_baseline(flags, scenario);
  const Report baseline = load_baseline(flags.baseline);
  const Report report = run_quietly(flags, scenario);
  const CheckResult result = check(report, baseline, flags.limits);
  if (output.json()) {
    output.write_json(check_to_json(result, report, baseline));
  } else {
    output.write_text(with_colored_verdict(check_text(result, report, baseline), result.verdict, flags.common));
  }
  if (output.wants_page()) output.write_page(check_to_json(result, report, baseline));
  const int expectations = report_expectations(scenario.expect, report);
  const int verdict = exit_code_of(result.verdict);
  return expectations == kOk ? verdict : expectations;
}

// The options of --against.
void add_pair_options(CLI::App& command, CheckFlags& flags) {
  CLI::Option* const margin = command.add_option_function<std::string>(
      "--margin",
      [&flags](const std::string& text) {
        const std::optional<double> value = parse_tolerance(text);
        if (!value || *value <= 0 || *value >= 1) {
          throw CLI::ValidationError("--margin", "expected a percentage above 0 and below 100, found '" + text + "'");
        }
        flags.pairs.margin = *value;
      },
      "Change of the step time that does not matter (default: 3%)");
  CLI::Option* const seed = command.add_option("--seed", flags.pairs.seed, "Repeats an order of launches");
  CLI::Option* const timeout = command.add_option_function<std::string>(
      "--launch-timeout",
      [&flags](const std::string& text) { flags.pairs.launch_timeout_s = seconds_of("--launch-timeout", text); },
      "A launch that takes longer has failed (default: 600s)");
  for (CLI::Option* const option : {margin, seed, timeout}) option->needs("--against");
  for (const char* const of_baselines : {"--tolerance", "--max-step-time"}) {
    command.get_option(of_baselines)->needs("--baseline");
  }
}

}  // namespace

void add_check(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "check", "Run a scenario and compare its timings with a stored baseline, or with another tandem's");
  auto flags = std::make_shared<CheckFlags>();
  command->add_option("scenario", flags->scenario, "The scenario file")->required();
  CLI::Option_group* const with = command->add_option_group("compared with");
  with->add_option("--baseline", flags->baseline, "A report, as `tandem run --json` or --update writes it");
  with->add_option("--against", flags->pairs.program,
                   "Another tandem, launched in turns with this one; for measured times");
  with->require_option(1);
  command->add_flag("--update", flags->update, "Store this run as the baseline")->needs("--baseline");
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
        flags->limits.max_step_time_ns = static_cast<Nanoseconds>(seconds_of("--max-step-time", text) * 1e9);
      },
      "A budget for the median step time, such as 12.5ms");
  add_pair_options(*command, *flags);
  add_common_options(*command, flags->common);
  add_page_option(*command, flags->common);
  command->callback([flags, &action] { action = [flags] { return check_scenario(*flags); }; });
}

}  // namespace tandem
