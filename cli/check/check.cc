#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "cli/base/command.h"
#include "cli/base/exit_codes.h"
#include "cli/base/outcome.h"
#include "cli/base/output.h"
#include "cli/base/progress_line.h"
#include "cli/check/check_flags.h"
#include "cli/check/check_outputs.h"
#include "cli/check/check_pairs.h"
#include "cli/check/check_suite.h"
#include "cli/check/verdicts.h"
#include "topologies/base/units.h"

namespace tandem {
namespace {

// Returns "; write 3% or 0.03" for a number that lacks its sign of percent.
std::string share_hint(const std::string& text) {
  const std::optional<double> share = parse_share(text + "%");
  if (!share || *share < 0.01 || *share >= 1) return "";
  return fmt::format("; write {}% or {:g}", text, *share);
}

double seconds_of(const char* option, const std::string& text) {
  const auto seconds = parse_quantity(text, Dimension::seconds);
  if (!seconds) {
    throw CLI::ValidationError(option, fmt::format("{}, found '{}'", expectation(Dimension::seconds), text));
  }
  const std::string problem = quantity_problem(*seconds, Dimension::seconds, text);
  if (!problem.empty()) throw CLI::ValidationError(option, problem);
  return *seconds;
}

void print_result(const CheckFlags& flags, const Output& output, const CheckedSuite& suite) {
  if (is_suite(flags.target)) {
    return output.json() ? output.write_json(suite_to_json(suite)) : output.write_text(suite_text(suite));
  }
  const CheckedScenario& checked = suite.front();
  if (output.json()) return output.write_json(*checked.document);
  output.write_document(with_colored_verdict(checked, flags.common));
}

void write_check_page(const CheckFlags& flags, const Output& output, const CheckedSuite& suite) {
  if (output.wants_page()) output.write_page(is_suite(flags.target) ? suite_to_json(suite) : *suite.front().document);
}

// A commit is bad if one scenario says so, even if others cannot be judged.
int code_for_bisect(const CheckedSuite& suite) {
  const auto any = [&suite](const auto& holds) { return std::any_of(suite.begin(), suite.end(), holds); };
  if (any([](const CheckedScenario& one) { return one.is_bad() && !one.cannot_be_judged; })) return kNotMet;
  return any([](const CheckedScenario& one) { return one.cannot_be_judged; }) ? kCannotBeJudged : exit_code_of(suite);
}

// Appends to the history before anybody is told of the launches, so that no kill loses a line that was reported.
// Returns why that failed.
std::exception_ptr keep_launches(const CheckFlags& flags, const std::vector<HistoryLaunch>& launches) {
  try {
    if (!launches.empty()) append_history(flags.history, launches);
    return nullptr;
  } catch (const Error&) {
    return std::current_exception();
  }
}

int check_all(const CheckFlags& flags) {
  const Output output(flags.common);
  check_outputs_writable(flags);
  check_other_program(flags.against);
  ProgressLine progress(flags.common);
  const auto [suite, launches, failure] = check_scenarios(flags, progress);
  progress.finish();
  if (failure) {
    write_outputs(flags, suite);
    std::rethrow_exception(failure);
  }
  const std::exception_ptr unkept = keep_launches(flags, launches);
  print_result(flags, output, suite);
  write_outputs(flags, suite);
  write_check_page(flags, output, suite);
  if (unkept) std::rethrow_exception(unkept);
  return flags.bisect ? code_for_bisect(suite) : exit_code_of(suite);
}

// `git bisect run` takes 1 as bad, 125 as a commit to skip, and from 128 on ends the search.
int check_for_bisect(const CheckFlags& flags) {
  const int code = run_to_exit_code([&flags] { return check_all(flags); });
  return code == kOk || code == kNotMet || code == kInterrupted ? code : kCannotBeJudged;
}

void add_baseline_options(CLI::App& command, CheckFlags& flags) {
  command.add_flag("--update", flags.update, "Store this run as the baseline, or as the new level of the history");
  command.add_flag("--always", flags.always,
                   "Run a simulation even if program, scenario and topology are those of the baseline; with --update "
                   "the baseline does not name the program");
  command.add_option_function<std::string>(
      "--tolerance",
      [&flags](const std::string& text) {
        flags.limits.tolerance = parse_share(text);
        if (!flags.limits.tolerance) {
          throw CLI::ValidationError("--tolerance",
                                     "expected a percentage such as 5%, found '" + text + "'" + share_hint(text));
        }
      },
      "Change of the step time to accept (default: 3% of measured times, none of simulated ones)");
  command.add_option_function<std::string>(
      "--max-step-time",
      [&flags](const std::string& text) {
        flags.limits.max_step_time_ns = std::llround(seconds_of("--max-step-time", text) * 1e9);
      },
      "A budget for the mean step time, such as 12.5ms");
  for (const char* const of_baselines : {"--always", "--tolerance", "--max-step-time"}) {
    command.get_option(of_baselines)->needs("--baseline");
  }
}

// The options of --against and --history.
void add_launch_options(CLI::App& command, CheckFlags& flags) {
  add_margin_option(command, flags.margin);
  command.add_option("--seed", flags.seed, "Repeats an order of launches")
      ->needs("--against")
      ->check(CLI::Range(std::int64_t{0}, std::numeric_limits<std::int64_t>::max()));
  command
      .add_option_function<std::string>(
          "--gate",
          [&flags](const std::string& text) {
            const std::optional<PairedGates> gates = gates_from(text);
            if (!gates)
              throw CLI::ValidationError(
                  "--gate", "expected counts, op-time, cpu-time, wall-clock or several, found '" + text + "'");
            flags.gates = *gates;
          },
          "What decides: exact counts, the time of ops, processor time, wall-clock time (default: all, "
          "counts,op-time,cpu-time,wall-clock)")
      ->needs("--against");
  command.add_option_function<std::string>(
      "--launch-timeout",
      [&flags](const std::string& text) { flags.launch_timeout_s = seconds_of("--launch-timeout", text); },
      "A launch that takes longer has failed (default: 600s)");
  command.add_option("--tries", flags.tries, "How often to measure while others disturb it (default: 3)")
      ->check(CLI::Range(1, 100));
  command
      .add_option("--commit", flags.commit,
                  "The commit that is measured (default: $GITHUB_SHA, $CI_COMMIT_SHA, or what git says)")
      ->needs("--history");
}

void add_output_options(CLI::App& command, CheckFlags& flags) {
  CheckOutputs& outputs = flags.outputs;
  command.add_option("--junit", outputs.junit, "Write the verdicts to this file as JUnit's XML");
  command.add_option("--markdown", outputs.markdown, "Write a table to this file as Markdown");
  command.add_option("--google-benchmark", outputs.google_benchmark,
                     "Write the step times to this file as Google Benchmark's JSON");
  command.add_option("--csv", outputs.csv, "Write the step times to this file as CSV");
}

// Checks combinations of options, which the parser cannot.
void check_combination(const CLI::App& command, const CheckFlags& flags) {
  const auto problem = [](const char* message) { throw CLI::ValidationError("check", message); };
  const bool launches = !flags.against.empty() || !flags.history.empty();
  if (flags.baseline.empty() && !launches) problem("one of --baseline, --against and --history is required");
  for (const char* const of_launches : {"--margin", "--launch-timeout"}) {
    if (command.count(of_launches) > 0 && !launches)
      problem("--margin and --launch-timeout need --against or --history");
  }
  if (flags.update && !flags.against.empty()) problem("--update stores nothing with --against");
  if (command.count("--tries") > 0 && !flags.against.empty()) {
    problem("--tries has no meaning with --against, which compares launches pair by pair");
  }
}

}  // namespace

std::optional<double> parse_share(std::string_view text) {
  const bool percent = text.ends_with('%');
  if (percent) text.remove_suffix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  if (value < 0 || (!percent && value >= 1)) return std::nullopt;
  return percent ? value / 100 : value;
}

void add_margin_option(CLI::App& command, double& margin) {
  command.add_option_function<std::string>(
      "--margin",
      [&margin](const std::string& text) {
        const std::optional<double> value = parse_share(text);
        if (!value || *value <= 0 || *value >= 1) {
          throw CLI::ValidationError(
              "--margin", "expected a percentage above 0 and below 100, found '" + text + "'" + share_hint(text));
        }
        margin = *value;
      },
      "Change of the step time that does not matter (default: 3%)");
}

void add_check(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "check", "Has a time changed? Compare scenarios with stored reports, another tandem, or their history");
  auto flags = std::make_shared<CheckFlags>();
  command
      ->add_option(
          "scenario", flags->target,
          "A scenario file, a folder of them, or a file that lists them; - is a scenario on the standard input")
      ->required();
  add_set_option(*command, flags->settings);
  command->add_option("--baseline", flags->baseline,
                      "A report, as `tandem run --json` or --update writes it, or a folder of them");
  CLI::Option* const against = command->add_option(
      "--against", flags->against, "Another tandem, launched in turns with this one; for measured times");
  command
      ->add_option("--history", flags->history, "A file of JSON lines, one for each launch, to which this one is added")
      ->excludes(against);
  command->add_flag("--bisect", flags->bisect, "End with 125 where nothing can be said, as `git bisect run` wants it");
  add_baseline_options(*command, *flags);
  add_launch_options(*command, *flags);
  add_output_options(*command, *flags);
  add_common_options(*command, flags->common);
  add_page_option(*command, flags->common);
  command->callback([command, flags, &action] {
    check_combination(*command, *flags);
    // A bisection looks for whatever changed the times, even if it was the scenario.
    flags->limits.compares_content = !flags->bisect;
    action = [flags] { return flags->bisect ? check_for_bisect(*flags) : check_all(*flags); };
  });
}

}  // namespace tandem
