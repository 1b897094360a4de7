#include "reports/checks/paired_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "reports/base/statistics.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

double as_change(double log_ratio) {
  return std::expm1(log_ratio);
}

CentreInterval as_changes(const CentreInterval& logs) {
  return {.estimate = as_change(logs.estimate), .lower = as_change(logs.lower), .upper = as_change(logs.upper)};
}

// `strict` is the interval at the significance level that several comparisons share; empty if there are too few pairs
// for it.
Verdict verdict_of(const CentreInterval& logs, const std::optional<CentreInterval>& strict, double margin) {
  if (strict && strict->lower > margin) return Verdict::regressed;
  if (strict && strict->upper < -margin) return Verdict::improved;
  if (logs.lower > -margin && logs.upper < margin) return Verdict::ok;
  return Verdict::inconclusive;
}

// The interval narrows with the square root of the number of pairs. Its half width must become as small as the distance
// of the estimate from the margin.
std::optional<int> pairs_needed(const CentreInterval& logs, double margin, int pairs) {
  const double half_width = (logs.upper - logs.lower) / 2;
  const double distance = std::abs(std::abs(logs.estimate) - margin);
  const double needed = pairs * std::pow(half_width / distance, 2);
  if (!(needed < 1e6)) return std::nullopt;
  return std::max(static_cast<int>(std::ceil(needed)), pairs + 1);
}

// Returns the differences in one part of the step; empty if a launch lacks the part or spends no time in it.
std::vector<double> log_ratios_of_part(const std::vector<std::map<std::string, Nanoseconds>>& parts,
                                       std::span<const Launch> launches, const std::string& name) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i + 1 < launches.size(); i += 2) {
    const auto one = parts[i].find(name);
    const auto other = parts[i + 1].find(name);
    if (one == parts[i].end() || other == parts[i + 1].end() || one->second <= 0 || other->second <= 0) return {};
    ratios.push_back(
        log_ratio(launches[i], launches[i + 1], static_cast<double>(one->second), static_cast<double>(other->second)));
  }
  return ratios;
}

}  // namespace

double log_ratio(const Launch& one, const Launch& other, double time_of_one, double time_of_other) {
  TANDEM_CHECK(one.is_new != other.is_new, "a pair has one launch of each program");
  const double ratio = std::log(time_of_one / time_of_other);
  return one.is_new ? ratio : -ratio;
}

CentreInterval change_at(const std::vector<double>& log_ratios, double level) {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  const std::optional<CentreInterval> logs = centre_of(log_ratios, level);
  return logs ? as_changes(*logs) : CentreInterval{.estimate = kUnknown, .lower = kUnknown, .upper = kUnknown};
}

std::optional<PairedResult> look_at(const std::vector<double>& log_ratios, double margin, int comparisons) {
  const int pairs = static_cast<int>(log_ratios.size());
  const auto* const look = std::find_if(std::begin(kPairedLooks), std::end(kPairedLooks),
                                        [&](const PairedLook& due) { return due.pairs == pairs; });
  if (look == std::end(kPairedLooks)) return std::nullopt;
  const std::optional<CentreInterval> logs = centre_of(log_ratios, look->level);
  TANDEM_CHECK(logs.has_value(), "every look has pairs enough for its level");
  const std::optional<CentreInterval> strict = centre_of(log_ratios, look->level / comparisons);
  PairedResult result{.margin = margin, .change = as_changes(*logs), .level = look->level, .pairs = pairs};
  result.verdict = verdict_of(*logs, strict, std::log1p(margin));
  const bool shares_level = strict && result.verdict != Verdict::ok;
  if (shares_level) {
    result.change = as_changes(*strict);
    result.level = look->level / comparisons;
  }
  if (result.verdict != Verdict::inconclusive) return result;
  if (look + 1 != std::end(kPairedLooks)) return std::nullopt;
  result.pairs_needed = pairs_needed(shares_level ? *strict : *logs, std::log1p(margin), pairs);
  return result;
}

std::optional<PairedResult> look_again(const std::vector<double>& log_ratios, double margin, int comparisons) {
  for (const PairedLook& look : kPairedLooks) {
    if (look.pairs > static_cast<int>(log_ratios.size())) break;
    const std::vector<double> first(log_ratios.begin(), log_ratios.begin() + look.pairs);
    if (auto result = look_at(first, margin, comparisons)) return result;
  }
  return std::nullopt;
}

bool LaunchOrder::is_new(int launch) const {
  constexpr int kLaunchesOfBlock = 4;
  std::mt19937_64 random(seed_);
  random.discard(static_cast<unsigned long long>(launch / kLaunchesOfBlock));
  const bool begins_with_new = (random() >> 63) != 0;
  const int place = launch % kLaunchesOfBlock;
  const bool is_outer = place == 0 || place == kLaunchesOfBlock - 1;
  return is_outer == begins_with_new;
}

StepFigure compared_figure(std::span<const Launch> launches) {
  std::vector<StepTime> times;
  for (const Launch& launch : launches) times.push_back(launch.report.summary.step_time);
  return compared_figure(times);
}

std::vector<double> log_ratios_of(const std::vector<Launch>& launches) {
  const StepFigure figure = compared_figure(launches);
  std::vector<double> ratios;
  for (std::size_t i = 0; i + 1 < launches.size(); i += 2) {
    const auto time_of = [&](const Launch& launch) {
      return static_cast<double>(launch.report.summary.step_time.*figure);
    };
    ratios.push_back(log_ratio(launches[i], launches[i + 1], time_of(launches[i]), time_of(launches[i + 1])));
  }
  return ratios;
}

// Holm's method compares the smallest p-value with the level / the number of figures, the next with the level / one
// less, and so on. The intervals are those of these levels.
void add_figures(PairedResult& result, std::span<const Launch> launches) {
  std::vector<std::map<std::string, Nanoseconds>> parts;
  for (const Launch& launch : launches) parts.push_back(parts_of(launch.report));
  std::vector<std::vector<double>> ratios_of_figures;
  std::vector<double> p_values;
  for (const auto& [name, time] : parts.front()) {
    std::vector<double> ratios = log_ratios_of_part(parts, launches, name);
    if (ratios.empty()) continue;
    const std::optional<CentreInterval> logs = centre_of(ratios, result.level);
    if (!logs) continue;
    result.figures.push_back({.name = name, .estimate = as_change(logs->estimate)});
    p_values.push_back(signed_rank_p_value(ratios));
    ratios_of_figures.push_back(std::move(ratios));
  }
  const std::vector<double> adjusted = holm_adjusted(p_values);
  for (std::size_t i = 0; i < adjusted.size(); ++i) {
    PairedFigure& figure = result.figures[i];
    figure.adjusted_p_value = adjusted[i];
    const auto smaller = std::count_if(p_values.begin(), p_values.end(), [&](double p) { return p < p_values[i]; });
    const double level = result.level / static_cast<double>(static_cast<std::ptrdiff_t>(p_values.size()) - smaller);
    if (const auto logs = centre_of(ratios_of_figures[i], level)) figure.change = as_changes(*logs);
  }
}

void add_disturbance(PairedResult& result, std::span<const Launch> launches) {
  std::vector<double> lost;
  for (const Launch& launch : launches) {
    if (launch.report.is_disturbed()) lost.push_back(launch.report.machine_use->lost());
  }
  result.disturbance = {.launches = static_cast<int>(launches.size()), .disturbed = static_cast<int>(lost.size())};
  if (!lost.empty()) result.disturbance.median_lost = median_of(std::move(lost));
  if (result.disturbance.prevents_advice()) result.pairs_needed.reset();
}

void check_comparable(const Report& report, const Report& first, const std::string& name) {
  const auto same = [&](const char* what, const auto& here, const auto& there) {
    if (here == there) return;
    throw InputError(
        {{.file = name,
          .path = "",
          .message = fmt::format("{} is '{}', in the first launch '{}'; launches that are compared must be "
                                 "of one job on one machine",
                                 what, here, there)}});
  };
  same("the scenario's content (hash)", report.scenario_hash, first.scenario_hash);
  same("the engine", report.engine, first.engine);
  same("the number of replicas", report.replicas, first.replicas);
  same("the number of workers", report.workers, first.workers);
  if (report.machine.empty() != first.machine.empty()) {
    throw InputError(
        {{.file = name,
          .path = "machine",
          .message = fmt::format("is '{}', in the first launch '{}'; a Tandem that does not name its machine "
                                 "is older, and cannot be compared",
                                 report.machine, first.machine)}});
  }
  same("the machine", report.machine, first.machine);
  // Reports of earlier versions say nothing of it.
  if (!report.system.empty() && !first.system.empty()) same("the system", report.system, first.system);
  same("the number of hardware threads", setting_of(report, "hardware_threads"), setting_of(first, "hardware_threads"));
  if (report.summary.step_time.mean <= 0) {
    throw InputError({{.file = name, .path = "", .message = "its steps take no time"}});
  }
}

}  // namespace tandem
