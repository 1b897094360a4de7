#include "reports/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "reports/report_text.h"
#include "reports/text_table.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

// Returns every time in a report, by name. Without `has_parts`, leaves out the mean step and its parts.
std::map<std::string, Nanoseconds> times_of(const Report& report, bool has_parts) {
  std::map<std::string, Nanoseconds> times = parts_of(report);
  const StepTime& step = report.summary.step_time;
  times.insert({{"step_time.median", step.median}, {"step_time.min", step.min}, {"step_time.p95", step.p95}});
  if (has_parts) {
    times["step_time.mean"] = step.mean;
  } else {
    std::erase_if(times, [](const auto& time) { return time.first.starts_with("per_step."); });
  }
  return times;
}

// Parts compare where both reports know them, and both are those of the mean step.
std::vector<CheckedFigure> differences_of(const Report& report, const Report& baseline, double tolerance) {
  const bool both_are_means = report.summary.step_time.has_mean == baseline.summary.step_time.has_mean;
  const bool have_parts = both_are_means && report.has_parts() && baseline.has_parts();
  auto current = times_of(report, have_parts);
  auto before = times_of(baseline, have_parts);
  std::set<std::string> names;
  for (const auto& [name, time] : current) names.insert(name);
  for (const auto& [name, time] : before) names.insert(name);
  std::vector<CheckedFigure> differences;
  for (const std::string& name : names) {
    const Nanoseconds now = current[name];
    const Nanoseconds then = before[name];
    if (now == then) continue;
    if (then > 0 && now > 0 && std::abs(static_cast<double>(now - then)) <= tolerance * static_cast<double>(then)) {
      continue;
    }
    differences.push_back({.name = name, .baseline_ns = then, .current_ns = now});
  }
  return differences;
}

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

// Returns whether no part changes against the direction of the step: else shares of its change mean nothing.
bool all_change_alike(const Report& report, const Report& baseline, Nanoseconds step_change) {
  return std::all_of(step_parts().begin(), step_parts().end(), [&](const StepPart& part) {
    const Nanoseconds change = report.summary.per_step.*part.time - baseline.summary.per_step.*part.time;
    return change == 0 || (change > 0) == (step_change > 0);
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

// Says in what the jobs of the two reports differ.
std::vector<std::string> job_changes(const Report& report, const Report& baseline, bool compares_content,
                                     const std::vector<std::string>& content_changes) {
  std::vector<std::string> changes;
  const auto differ = [&](const char* what, const auto& now, const auto& then) {
    if (now != then) changes.push_back(fmt::format("{} is '{}', in the baseline '{}'", what, now, then));
  };
  differ("the scenario", report.scenario, baseline.scenario);
  if (compares_content && report.scenario_hash != baseline.scenario_hash && !content_changes.empty()) {
    changes.insert(changes.end(), content_changes.begin(), content_changes.end());
  } else if (compares_content) {
    differ("the scenario's content (hash)", report.scenario_hash, baseline.scenario_hash);
  }
  differ("the engine", report.engine, baseline.engine);
  if (!report.deterministic) differ("the machine", report.machine, baseline.machine);
  if (!report.system.empty() && !baseline.system.empty()) differ("the system", report.system, baseline.system);
  differ("the strategy", report.strategy, baseline.strategy);
  differ("cross-device ops", report.cross_device_ops, baseline.cross_device_ops);
  differ("the number of replicas", report.replicas, baseline.replicas);
  differ("the number of workers", report.workers, baseline.workers);
  differ("the number of parameter servers", report.parameter_servers, baseline.parameter_servers);
  return changes;
}

// Returns what times depend on besides the job: versions, network model, topology.
std::vector<std::string> model_changes(const Report& report, const Report& baseline) {
  std::vector<std::string> changes;
  const auto differ = [&](const std::string& what, const std::string& now, const std::string& then) {
    if (now != then) changes.push_back(fmt::format("{} is '{}', in the baseline '{}'", what, now, then));
  };
  differ("the topology", report.topology, baseline.topology);
  differ("the provenance of its figures", report.topology_provenance, baseline.topology_provenance);
  std::set<std::string> names;
  for (const auto& [name, value] : report.settings) names.insert(name);
  for (const auto& [name, value] : baseline.settings) names.insert(name);
  for (const std::string& name : names) differ(name, setting_of(report, name), setting_of(baseline, name));
  return changes;
}

void append(std::vector<std::string>& to, const std::vector<std::string>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

void check_simulated(const Report& report, const Report& baseline, CheckResult& result) {
  result.differences = differences_of(report, baseline, result.tolerance);
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

void check_measured(const Report& report, const Report& baseline, const CheckLimits& limits, CheckResult& result) {
  const StepTime& now = report.summary.step_time;
  const StepTime& then = baseline.summary.step_time;
  const StepFigure figure = result.figure;
  result.noise = std::hypot(relative_deviation(now), relative_deviation(then));
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

std::map<std::string, Nanoseconds> parts_of(const Report& report) {
  std::map<std::string, Nanoseconds> parts;
  if (report.has_parts()) {
    for (const auto& [name, time] : step_figures()) {
      parts[fmt::format("per_step.{}", name)] = report.summary.per_step.*time;
    }
  }
  for (const CollectiveSummary& collective : report.summary.collectives) {
    parts[fmt::format("{} {} B x {}", collective.operation, collective.bytes, collective.devices)] = collective.time_ns;
  }
  return parts;
}

std::string setting_of(const Report& report, const std::string& name) {
  const auto found = report.settings.find(name);
  return found == report.settings.end() ? "(none)" : found->second;
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
  if (then > 0) result.change = static_cast<double>(now) / static_cast<double>(then) - 1;
  if (std::vector<std::string> changes = job_changes(report, baseline, limits.compares_content, content_changes);
      !changes.empty()) {
    result.verdict = Verdict::model_changed;
    result.is_of_another_job = true;
    result.reasons.push_back("the baseline is of another job:");
    append(result.reasons, changes);
    if (simulated) result.differences = differences_of(report, baseline, result.tolerance);
    if (!result.differences.empty()) find_largest_difference(report, baseline, result);
  } else if (simulated) {
    check_simulated(report, baseline, result);
  } else {
    check_measured(report, baseline, limits, result);
  }
  check_budget(report, limits, result);
  return result;
}

}  // namespace tandem
