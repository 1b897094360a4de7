#include "reports/comparison/report_changes.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <set>

#include "reports/base/text_table.h"

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
  if (report.evaluations) {
    times["evaluations.median"] = report.evaluations->median_time();
    times["evaluations.waited"] = report.evaluations->waited;
  }
  return times;
}

}  // namespace

std::string change_text(const CheckedFigure& figure) {
  if (figure.baseline_ns <= 0) return "-";
  return error_text(static_cast<double>(figure.current_ns) / static_cast<double>(figure.baseline_ns) - 1);
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

std::vector<CheckedFigure> time_changes(const Report& report, const Report& baseline, double tolerance) {
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
  if (!report.deterministic && !baseline.deterministic) differ("the machine", report.machine, baseline.machine);
  if (!report.system.empty() && !baseline.system.empty()) differ("the system", report.system, baseline.system);
  differ("the strategy", report.strategy, baseline.strategy);
  differ("cross-device ops", report.cross_device_ops, baseline.cross_device_ops);
  differ("the number of replicas", report.replicas, baseline.replicas);
  differ("the number of workers", report.workers, baseline.workers);
  differ("the number of parameter servers", report.parameter_servers, baseline.parameter_servers);
  return changes;
}

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

}  // namespace tandem
