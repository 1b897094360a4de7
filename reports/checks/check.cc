#include "reports/checks/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "reports/base/text_table.h"
#include "reports/run/report_text.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

Nanoseconds change_of(const CheckedFigure& figure) {
  return figure.current_ns - figure.baseline_ns;
}

// Returns the part of the step that changed most. Where none did, returns the first of the other times.
const CheckedFigure& largest_of(const std::vector<CheckedFigure>& differences) {
  const CheckedFigure* largest = nullptr;
  for (const auto& [name, time] : step_parts()) {
    const auto found = std::find_if(differences.begin(), differences.end(), [name = name](const CheckedFigure& one) {
      return one.name == fmt::format("per_step.{}", name);
    });
    if (found == differences.end()) continue;
    if (largest == nullptr || std::abs(change_of(*found)) > std::abs(change_of(*largest))) largest = &*found;
  }
  return largest != nullptr ? *largest : differences.front();
}

// Returns whether no part changes against the direction of the step by more than a thousandth of its change, as
// rounding does: else shares of its change mean nothing.
bool all_change_alike(const Report& report, const Report& baseline, Nanoseconds step_change) {
  return std::all_of(step_parts().begin(), step_parts().end(), [&](const StepPart& part) {
    const Nanoseconds change = report.summary.per_step.*part.time - baseline.summary.per_step.*part.time;
    return std::abs(change) <= std::abs(step_change) / 1000 || (change > 0) == (step_change > 0);
  });
}

void find_largest_difference(const Report& report, const Report& baseline, CheckResult& result) {
  const CheckedFigure& largest = largest_of(result.differences);
  result.largest_difference = largest;
  const Nanoseconds change = report.summary.step_time.mean - baseline.summary.step_time.mean;
  std::string of_the_step;
  if (change != 0 && largest.name.starts_with("per_step.")) {
    const double share = static_cast<double>(change_of(largest)) / static_cast<double>(change);
    const bool is_alike = all_change_alike(report, baseline, change);
    if (is_alike && share <= 1) {
      result.largest_share = share;
      of_the_step = fmt::format(", {} of the step's change", percent_text(share));
    } else if (!is_alike) {
      of_the_step = fmt::format("; the step {}, because other parts change the other way", signed_time_text(change));
    }
  }
  const auto [before, now] = time_texts(largest.baseline_ns, largest.current_ns);
  result.reasons.push_back(fmt::format("{} changed most: {} -> {} ({}){}", largest.name, before, now,
                                       signed_time_text(change_of(largest)), of_the_step));
}

void append(std::vector<std::string>& to, const std::vector<std::string>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

void check_simulated(const Report& report, const Report& baseline, CheckResult& result) {
  result.differences = time_changes(report, baseline, result.tolerance);
  const std::vector<std::string> model = model_changes(report, baseline);
  if (result.differences.empty()) {
    result.reasons.push_back(result.tolerance > 0 ? "every time is within the tolerance of the baseline"
                                                  : "every time equals the baseline");
  } else if (!model.empty()) {
    result.verdict = Verdict::model_changed;
    result.reasons.push_back("times differ, and so does what decides them:");
  } else {
    const bool slower = result.change > 0;
    const bool same_step = result.change == 0;
    result.verdict = slower || same_step ? Verdict::regressed : Verdict::improved;
    result.reasons.push_back(
        same_step ? "the step takes as long as before, but its parts do not"
                  : fmt::format("the simulated step is {} than the baseline", slower ? "slower" : "faster"));
  }
  append(result.reasons, model);
  if (!result.differences.empty()) find_largest_difference(report, baseline, result);
}

double relative_deviation(const StepTime& time) {
  return time.median > 0 ? static_cast<double>(time.median_absolute_deviation) / static_cast<double>(time.median) : 0;
}

// Exact counts decide, whatever other programs did to the times. Returns whether they differ.
bool check_counts(const Report& report, const Report& baseline, CheckResult& result) {
  const int steps = report.steps - report.warmup_steps;
  const bool are_known = report.counts && baseline.counts && steps == baseline.steps - baseline.warmup_steps;
  if (!are_known || report.asynchronous) return false;
  const std::vector<CountChange> changes = count_changes(*report.counts, *baseline.counts);
  if (changes.empty()) return false;
  result.verdict = is_less(changes) ? Verdict::improved : Verdict::regressed;
  result.counts_differ = true;
  result.reasons.emplace_back("the exact counts of the work differ from the baseline's:");
  for (const CountChange& change : changes) result.reasons.push_back(count_change_text(change, steps));
  append(result.reasons, model_changes(report, baseline));
  return true;
}

void check_measured(const Report& report, const Report& baseline, const CheckLimits& limits, CheckResult& result) {
  const StepTime& now = report.summary.step_time;
  const StepTime& then = baseline.summary.step_time;
  const StepFigure figure = result.figure;
  const double beyond = std::abs(result.change) - result.tolerance;
  const std::string limits_text =
      fmt::format("tolerance {}, noise {}", percent_text(result.tolerance), percent_text(result.noise));
  // Disturbances only slow a run down. So a disturbed slower run proves no regression, and a disturbed baseline no
  // improvement or equality.
  const bool is_slower = result.change > result.tolerance;
  const Report& doubtful = is_slower ? report : baseline;
  if (std::min(now.samples, then.samples) < limits.min_samples) {
    result.verdict = Verdict::inconclusive;
    result.reasons.push_back(fmt::format("too few steps: {} now and {} in the baseline; at least {} are needed",
                                         now.samples, then.samples, limits.min_samples));
  } else if (doubtful.is_disturbed()) {
    result.verdict = Verdict::inconclusive;
    result.reasons.push_back(
        fmt::format("{} was disturbed: {}", is_slower ? "the run" : "the baseline", lost_text(*doubtful.machine_use)));
  } else if (beyond <= 0) {
    result.reasons.push_back(
        fmt::format("the change of the {} step time is within the tolerance ({})", name_of(figure), limits_text));
  } else if (beyond <= result.noise) {
    result.verdict = Verdict::inconclusive;
    result.reasons.push_back("the change is beyond the tolerance, but not by more than the noise (" + limits_text +
                             "); run more steps, or on a quieter machine");
  } else {
    result.verdict = Verdict::inconclusive;
    result.reasons.push_back("the change is beyond tolerance and noise (" + limits_text +
                             "), but two launches of one program differ as well; --against compares launches with "
                             "those of another program, --history with earlier ones");
  }
  if (result.verdict != Verdict::ok) {
    result.differences.push_back(
        {.name = fmt::format("step_time.{}", name_of(figure)), .baseline_ns = then.*figure, .current_ns = now.*figure});
  }
  append(result.reasons, model_changes(report, baseline));
}

void check_budget(const Report& report, const CheckLimits& limits, CheckResult& result) {
  const Nanoseconds mean = report.summary.step_time.mean;
  if (!limits.max_step_time_ns || mean <= *limits.max_step_time_ns) return;
  result.verdict = Verdict::regressed;
  result.reasons.insert(result.reasons.begin(), fmt::format("the step takes {}, over its budget of {}", time_text(mean),
                                                            time_text(*limits.max_step_time_ns)));
}

}  // namespace

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::ok:
      return "ok";
    case Verdict::improved:
      return "improved";
    case Verdict::regressed:
      return "regressed";
    case Verdict::model_changed:
      return "model changed";
    case Verdict::inconclusive:
      return "inconclusive";
  }
  TANDEM_UNREACHABLE("a Verdict outside its enumerators");
}

StepFigure compared_figure(const Report& report, const Report& baseline) {
  if (report.deterministic && baseline.deterministic) {
    return exact_figure(report.summary.step_time, baseline.summary.step_time);
  }
  return compared_figure(std::array{report.summary.step_time, baseline.summary.step_time});
}

CheckResult check(const Report& report, const Report& baseline, const CheckLimits& limits,
                  const std::vector<std::string>& content_changes) {
  CheckResult result;
  const bool simulated = report.deterministic && baseline.deterministic;
  result.figure = compared_figure(report, baseline);
  const Nanoseconds now = report.summary.step_time.*result.figure;
  const Nanoseconds then = baseline.summary.step_time.*result.figure;
  result.tolerance = limits.tolerance.value_or(simulated ? 0 : kMeasuredTolerance);
  if (!simulated) {
    result.noise =
        std::hypot(relative_deviation(report.summary.step_time), relative_deviation(baseline.summary.step_time));
  }
  if (then > 0) result.change = static_cast<double>(now) / static_cast<double>(then) - 1;
  if (std::vector<std::string> changes = job_changes(report, baseline, limits.compares_content, content_changes);
      !changes.empty()) {
    result.verdict = Verdict::model_changed;
    result.is_of_another_job = true;
    result.reasons.push_back("the baseline is of another job:");
    append(result.reasons, changes);
    if (simulated) result.differences = time_changes(report, baseline, result.tolerance);
    if (!result.differences.empty()) find_largest_difference(report, baseline, result);
  } else if (simulated) {
    check_simulated(report, baseline, result);
  } else if (!check_counts(report, baseline, result)) {
    check_measured(report, baseline, limits, result);
  }
  check_budget(report, limits, result);
  return result;
}

}  // namespace tandem
