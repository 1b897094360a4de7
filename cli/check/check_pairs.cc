#include "cli/check/check_pairs.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>

#include "cli/base/expectations.h"
#include "cli/base/phase.h"
#include "cli/check/launched_report.h"
#include "cli/check/verdicts.h"
#include "reports/base/statistics.h"
#include "reports/run/report_text.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

Nanoseconds median_of_program(std::span<const Launch> launches, bool is_new) {
  const StepFigure figure = compared_figure(launches);
  std::vector<Nanoseconds> times;
  for (const Launch& launch : launches) {
    if (launch.is_new == is_new) times.push_back(launch.report.summary.step_time.*figure);
  }
  return median_of(std::move(times));
}

}  // namespace

PairedLaunches::PairedLaunches(const CheckFlags& flags, const Scenario& scenario)
    : flags_(flags),
      file_(scenario.file),
      name_(scenario.name),
      expect_(scenario.expect),
      seed_(flags.seed.value_or(std::random_device()())),
      order_(seed_) {}

void PairedLaunches::launch_next() {
  const int number = static_cast<int>(launches_.size());
  const bool is_new = order_.is_new(number);
  const Launched launched{.program = is_new ? this_program() : flags_.against,
                          .scenario = file_,
                          .number = number + 1,
                          .timeout_s = flags_.launch_timeout_s,
                          .settings = flags_.settings};
  const Phase phase("run " + launched.name());
  Report report = launched_report(launched);
  check_comparable(report, launches_.empty() ? report : launches_.front().report, launched.name());
  launches_.push_back({is_new, std::move(report)});
}

void PairedLaunches::run(int comparisons, ProgressLine& progress) {
  const auto show = progress.of_stages(name_);
  while (!result_) {
    show("pair of launches", static_cast<int>(launches_.size()) / 2, std::prev(std::end(kPairedLooks))->pairs);
    launch_next();
    launch_next();
    result_ = decide(launches_, flags_.gates, flags_.margin, comparisons);
  }
  progress.finish();
  add_figures(*result_, decisive_launches());
  add_disturbance(*result_, decisive_launches());
}

std::span<const Launch> PairedLaunches::decisive_launches() const {
  return std::span(launches_).first(static_cast<std::size_t>(2 * result_->pairs));
}

bool PairedLaunches::reconsider(int comparisons) {
  const Verdict before = result_->verdict;
  if (before != Verdict::inconclusive && result_->undecided.empty()) return false;
  result_ = decide(launches_, flags_.gates, flags_.margin, comparisons);
  TANDEM_CHECK(result_.has_value(), "the last look always has a result");
  add_figures(*result_, decisive_launches());
  add_disturbance(*result_, decisive_launches());
  return result_->verdict != before;
}

CheckedScenario PairedLaunches::result() const {
  CheckedScenario checked{.file = file_, .name = launches_.front().report.scenario, .mode = "paired"};
  checked.state = CheckState::judged;
  checked.verdict = result_->verdict;
  checked.exit_code = exit_code_of(result_->verdict);
  checked.reason = paired_reason(*result_);
  checked.step_time = median_of_program(decisive_launches(), true);
  checked.reference = median_of_program(decisive_launches(), false);
  checked.change = result_->change.estimate;
  if (!std::isnan(result_->change.lower)) checked.interval = {result_->change.lower, result_->change.upper};
  checked.samples = launches_.front().report.summary.step_time.samples;
  checked.text = paired_check_text({.title = title_of(launches_.front().report), .result = *result_, .seed = seed_});
  checked.document = std::make_shared<nlohmann::ordered_json>(paired_check_to_json(*result_, launches_, seed_));
  const auto is_mine = [](const Launch& launch) { return launch.is_new; };
  add_unmet(unmet_expectations(expect_, std::ranges::find_if(launches_, is_mine)->report), checked);
  return checked;
}

void check_other_program(const std::string& program) {
  if (program.empty() || std::filesystem::is_regular_file(program)) return;
  throw InputError({{.file = program, .path = "", .message = "no such program; --against takes the path of a tandem"}});
}

}  // namespace tandem
