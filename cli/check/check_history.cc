#include "cli/check/check_history.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>

#include "cli/base/expectations.h"
#include "cli/base/launch.h"
#include "cli/check/launched_report.h"
#include "cli/check/verdicts.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

// The probability of a wrong "regressed" in a suite, assuming that robust z's are normally distributed.
constexpr double kSuiteLevel = 0.01;

}  // namespace

std::string commit_of(const CheckFlags& flags) {
  if (!flags.commit.empty()) return flags.commit;
  for (const char* variable : {"GITHUB_SHA", "CI_COMMIT_SHA"}) {
    if (const char* commit = std::getenv(variable); commit != nullptr && *commit != '\0') return commit;
  }
  constexpr double kTimeoutS = 10;
  try {
    const LaunchResult head = launch({"/usr/bin/env", "git", "rev-parse", "HEAD"}, kTimeoutS);
    if (head.exit_code == 0) return head.output.substr(0, head.output.find('\n'));
  } catch (const RunError&) {
    // Without git there is no commit.
  }
  return "";
}

std::string utc_date() {
  std::time_t now = std::time(nullptr);
  if (const char* epoch = std::getenv("SOURCE_DATE_EPOCH"); epoch != nullptr && *epoch != '\0') {
    now = static_cast<std::time_t>(std::strtoll(epoch, nullptr, 10));
  }
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now));
}

void accept(HistoryResult& result) {
  result.verdict = Verdict::ok;
  result.reason = "accepted: a new level begins";
  for (HistoryLaunch& launch : result.launches) {
    launch.verdict = Verdict::ok;
    launch.accepted = true;
  }
}

CheckedScenario checked_by(const HistoryResult& result, const HistoryLimits& limits, const std::string& file) {
  CheckedScenario checked{.file = file, .name = result.launches.front().scenario, .mode = "history"};
  checked.state = CheckState::judged;
  checked.verdict = result.verdict;
  checked.exit_code = exit_code_of(result.verdict);
  checked.reason = result.reason;
  checked.step_time = result.step_time;
  checked.reference = result.level ? result.level->step_time : 0;
  checked.change = result.change;
  checked.samples = result.launches.front().step_time.samples;
  checked.text = history_check_text(result);
  checked.document = std::make_shared<nlohmann::ordered_json>(history_check_to_json(result, limits));
  return checked;
}

HistoryCheck::HistoryCheck(const CheckFlags& flags, const Scenario& scenario, std::span<const HistoryLaunch> history)
    : flags_(flags),
      file_(scenario.file),
      name_(scenario.name),
      expect_(scenario.expect),
      history_(history),
      limits_({.margin = flags.margin}) {}

HistoryLaunch HistoryCheck::launch_once(ProgressLine& progress) {
  progress.of_stages(name_)("launch", launches_, limits_.launches);
  const Report report = launched_report({.program = this_program(),
                                         .scenario = file_,
                                         .number = ++launches_,
                                         .timeout_s = flags_.launch_timeout_s,
                                         .settings = flags_.settings});
  if (report.summary.step_time.mean <= 0) {
    throw InputError({{.file = file_, .path = "", .message = "its steps take no time"}});
  }
  unmet_ = unmet_expectations(expect_, report);
  return history_launch(report, commit_of(flags_), utc_date());
}

HistoryLaunch HistoryCheck::launch_undisturbed(ProgressLine& progress) {
  HistoryLaunch launch = launch_once(progress);
  for (int attempt = 1; attempt < flags_.tries && launch.disturbed; ++attempt) {
    disturbed_.push_back(std::move(launch));
    launch = launch_once(progress);
  }
  return launch;
}

void HistoryCheck::run(ProgressLine& progress) {
  std::vector<HistoryLaunch> launches = {launch_undisturbed(progress)};
  const auto level = level_of(level_launches(history_, launches.front(), limits_), limits_);
  if (!flags_.update && level && is_suspect(*level, launches.front().step_time.*level->figure, limits_)) {
    while (static_cast<int>(launches.size()) < limits_.launches) launches.push_back(launch_undisturbed(progress));
  }
  progress.finish();
  result_ = judge_launches(history_, std::move(launches), limits_);
  if (!flags_.update) return;
  accept(result_);
}

double HistoryCheck::p_value() const {
  return result_.level ? std::erfc(result_.z / std::sqrt(2.0)) / 2 : 1;
}

void HistoryCheck::correct(double adjusted_p_value, int comparisons) {
  if (result_.verdict != Verdict::regressed || adjusted_p_value <= kSuiteLevel) return;
  result_.verdict = Verdict::inconclusive;
  result_.reason += fmt::format("; among {} scenarios it may be chance (p {:.3f} by Holm's correction)", comparisons,
                                adjusted_p_value);
  for (HistoryLaunch& launch : result_.launches) launch.verdict = result_.verdict;
}

CheckedScenario HistoryCheck::result() const {
  CheckedScenario checked = checked_by(result_, limits_, file_);
  add_unmet(unmet_, checked);
  return checked;
}

std::vector<HistoryLaunch> HistoryCheck::lines() const {
  std::vector<HistoryLaunch> all = disturbed_;
  for (HistoryLaunch& launch : all) launch.verdict = result_.verdict;
  all.insert(all.end(), result_.launches.begin(), result_.launches.end());
  return all;
}

}  // namespace tandem
