#include "reports/checks/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "reports/base/statistics.h"
#include "reports/base/text_table.h"
#include "reports/run/report_text.h"
#include "topologies/base/error.h"

namespace tandem {
namespace {

// The standard deviation of normal noise is its median absolute deviation times this.
constexpr double kDeviationOfMad = 1.4826;

double log_of(const HistoryLaunch& launch, StepFigure figure) {
  return std::log(static_cast<double>(launch.step_time.*figure));
}

std::vector<double> logs_of(std::span<const HistoryLaunch> launches, StepFigure figure) {
  std::vector<double> logs;
  logs.reserve(launches.size());
  for (const HistoryLaunch& launch : launches) logs.push_back(log_of(launch, figure));
  return logs;
}

Nanoseconds median_time(const std::vector<HistoryLaunch>& launches, StepFigure figure) {
  std::vector<Nanoseconds> times;
  for (const HistoryLaunch& launch : launches) times.push_back(launch.step_time.*figure);
  return median_of(std::move(times));
}

// Disturbances only slow a launch down, so a slow launch that was disturbed proves nothing.
bool is_doubtful(const HistoryResult& result, const HistoryLimits& limits) {
  if (!is_suspect(*result.level, result.step_time, limits) || result.change < 0) return false;
  return std::any_of(result.launches.begin(), result.launches.end(), [](const auto& one) { return one.disturbed; });
}

void decide(HistoryResult& result, const HistoryLimits& limits) {
  if (!result.level) {
    result.reason = fmt::format("only {} of the {} launches that make a level are known of this machine", result.known,
                                limits.fewest);
    return;
  }
  const std::string beyond =
      fmt::format("robust z {:+.1f}, limit {}; margin {}", result.z, limits.z, percent_text(limits.margin));
  if (is_doubtful(result, limits)) {
    result.reason = "slower, but others used the processors meanwhile (" + beyond + ")";
  } else if (is_suspect(*result.level, result.step_time, limits)) {
    result.verdict = result.change > 0 ? Verdict::regressed : Verdict::improved;
    result.reason = fmt::format("{} launches confirm it ({})", result.launches.size(), beyond);
  } else {
    result.verdict = Verdict::ok;
    result.reason = result.launches.size() == 1
                        ? fmt::format("as before ({})", beyond)
                        : fmt::format("the first launch was suspect, and two more do not confirm it ({})", beyond);
  }
}

void decide_exact(const HistoryLaunch& before, const HistoryLaunch& launch, HistoryResult& result) {
  const bool is_same_job = before.scenario_hash == launch.scenario_hash;
  const std::string when = before.commit.empty() ? before.date : "commit " + before.commit;
  const StepFigure figure = exact_figure(launch.step_time, before.step_time);
  if (launch.step_time.*figure == before.step_time.*figure) {
    result.reason = fmt::format("as at {}{}", when, is_same_job ? "" : ", though the scenario has another content");
    return;
  }
  result.verdict = !is_same_job ? Verdict::model_changed : result.change > 0 ? Verdict::regressed : Verdict::improved;
  const auto [now, then] = time_texts(launch.step_time.*figure, before.step_time.*figure);
  result.reason = fmt::format("{} now, {} at {}{}; --update accepts the new time", now, then, when,
                              is_same_job ? "" : ", when the scenario had another content");
}

// Returns every difference between neighbouring launches.
std::vector<ChangePoint> exact_changes(const std::vector<HistoryLaunch>& launches) {
  std::vector<ChangePoint> changes;
  for (std::size_t i = 1; i < launches.size(); ++i) {
    const StepFigure figure = exact_figure(launches[i - 1].step_time, launches[i].step_time);
    const Nanoseconds was = launches[i - 1].step_time.*figure, is = launches[i].step_time.*figure;
    if (is == was) continue;
    changes.push_back(
        {.index = static_cast<int>(i), .change = static_cast<double>(is) / static_cast<double>(was) - 1, .p_value = 0});
  }
  return changes;
}

void find_changes(HistorySeries& series, double margin) {
  const StepFigure figure = compared_figure(series.launches);
  std::vector<double> logs;
  std::vector<int> indices;
  for (std::size_t i = 0; i < series.launches.size(); ++i) {
    if (series.launches[i].disturbed) continue;
    logs.push_back(log_of(series.launches[i], figure));
    indices.push_back(static_cast<int>(i));
  }
  const std::size_t first = logs.size() - std::min(logs.size(), kMostSearched);
  series.changes = change_points(std::span(logs).subspan(first), {.margin = margin});
  for (ChangePoint& change : series.changes) change.index = indices[first + static_cast<std::size_t>(change.index)];
}

}  // namespace

bool HistoryLaunch::is_of(const HistoryLaunch& other) const {
  if (exact || other.exact) return exact == other.exact && scenario == other.scenario && engine == other.engine;
  return scenario_hash == other.scenario_hash && engine == other.engine && machine == other.machine;
}

HistoryLaunch history_launch(const Report& report, std::string commit, std::string date) {
  return {.scenario = report.scenario,
          .scenario_hash = report.scenario_hash,
          .engine = report.engine,
          .machine = report.system.empty() ? report.machine : report.machine + "; " + report.system,
          .commit = std::move(commit),
          .date = std::move(date),
          .tandem_version = report.tandem_version,
          .step_time = report.summary.step_time,
          .disturbed = report.is_disturbed(),
          .exact = report.deterministic};
}

double HistoryLevel::change_of(Nanoseconds time) const {
  return static_cast<double>(time) / static_cast<double>(step_time) - 1;
}

double HistoryLevel::z_of(Nanoseconds time) const {
  return std::log1p(change_of(time)) / spread;
}

std::vector<HistoryLaunch> level_launches(std::span<const HistoryLaunch> history, const HistoryLaunch& launch,
                                          const HistoryLimits& limits) {
  std::vector<HistoryLaunch> counted;
  for (auto known = history.rbegin(); known != history.rend(); ++known) {
    if (static_cast<int>(counted.size()) == limits.window) break;
    if (!known->is_of(launch)) continue;
    if (!known->disturbed && known->verdict != Verdict::regressed) counted.push_back(*known);
    if (known->accepted) break;
  }
  std::reverse(counted.begin(), counted.end());
  return counted;
}

StepFigure compared_figure(std::span<const HistoryLaunch> launches) {
  if (!launches.empty() && launches.back().exact) return &StepTime::mean;
  std::vector<StepTime> times;
  for (const HistoryLaunch& launch : launches) times.push_back(launch.step_time);
  return compared_figure(times);
}

std::optional<HistoryLevel> level_of(std::span<const HistoryLaunch> launches, const HistoryLimits& limits) {
  if (static_cast<int>(launches.size()) < limits.fewest) return std::nullopt;
  const StepFigure figure = compared_figure(launches);
  std::vector<double> logs = logs_of(launches, figure);
  const double centre = median_of(logs);
  for (double& log : logs) log = std::abs(log - centre);
  const double least = std::exp(-centre);  // a nanosecond
  return HistoryLevel{.launches = static_cast<int>(launches.size()),
                      .figure = figure,
                      .step_time = std::llround(std::exp(centre)),
                      .spread = std::max(kDeviationOfMad * median_of(std::move(logs)), least)};
}

bool is_suspect(const HistoryLevel& level, Nanoseconds step_time, const HistoryLimits& limits) {
  return std::abs(std::log1p(level.change_of(step_time))) > std::log1p(limits.margin) &&
         std::abs(level.z_of(step_time)) > limits.z;
}

HistoryResult judge_launches(std::span<const HistoryLaunch> history, std::vector<HistoryLaunch> launches,
                             const HistoryLimits& limits) {
  TANDEM_REQUIRE(!launches.empty(), "a verdict needs a launch");
  const std::vector<HistoryLaunch> counted = level_launches(history, launches.front(), limits);
  HistoryResult result{.known = static_cast<int>(counted.size()), .level = level_of(counted, limits)};
  result.step_time = median_time(launches, result.level ? result.level->figure : compared_figure(launches));
  result.launches = std::move(launches);
  if (result.level) {
    result.change = result.level->change_of(result.step_time);
    result.z = result.level->z_of(result.step_time);
    result.visible = std::max(limits.margin, std::expm1(limits.z * result.level->spread));
  }
  decide(result, limits);
  for (HistoryLaunch& launch : result.launches) launch.verdict = result.verdict;
  return result;
}

HistoryResult judge_exact(std::span<const HistoryLaunch> history, HistoryLaunch launch) {
  HistoryResult result{.verdict = Verdict::ok, .step_time = launch.step_time.mean};
  const HistoryLaunch* before = nullptr;
  for (const HistoryLaunch& known : history) {
    if (!known.is_of(launch)) continue;
    ++result.known;
    if (known.verdict == Verdict::ok) before = &known;
  }
  if (before == nullptr) {
    result.reason = "the first one of its history";
  } else {
    const StepFigure figure = exact_figure(launch.step_time, before->step_time);
    result.step_time = launch.step_time.*figure;
    result.level = HistoryLevel{.launches = result.known, .figure = figure, .step_time = before->step_time.*figure};
    result.change = result.level->change_of(result.step_time);
    decide_exact(*before, launch, result);
  }
  launch.verdict = result.verdict;
  result.launches = {std::move(launch)};
  return result;
}

bool HistorySeries::is_shortened() const {
  const auto undisturbed =
      std::count_if(launches.begin(), launches.end(), [](const HistoryLaunch& launch) { return !launch.disturbed; });
  return !is_exact() && static_cast<std::size_t>(undisturbed) > kMostSearched;
}

std::string HistorySeries::text() const {
  const HistoryLaunch& last = launches.back();
  return last.exact ? fmt::format("{}, simulated on engine {}", last.scenario, last.engine)
                    : fmt::format("{} on {}", last.scenario, last.machine);
}

std::vector<HistorySeries> series_of(std::vector<HistoryLaunch> history, double margin) {
  std::vector<HistorySeries> all;
  std::map<std::tuple<bool, std::string, std::string, std::string>, std::size_t> places;
  for (HistoryLaunch& launch : history) {
    const std::string& job = launch.exact ? launch.scenario : launch.scenario_hash;
    const auto [place, is_new] =
        places.try_emplace({launch.exact, job, launch.engine, launch.exact ? "" : launch.machine}, all.size());
    if (is_new) all.emplace_back();
    all[place->second].launches.push_back(std::move(launch));
  }
  for (HistorySeries& series : all) {
    if (series.is_exact()) {
      series.changes = exact_changes(series.launches);
    } else {
      find_changes(series, margin);
    }
  }
  return all;
}

HistorySeries last_of(const HistorySeries& series, std::size_t most) {
  const std::size_t cut = series.launches.size() - std::min(series.launches.size(), most);
  HistorySeries last{.launches = {series.launches.begin() + static_cast<std::ptrdiff_t>(cut), series.launches.end()},
                     .changes = {},
                     .earlier = series.earlier + cut};
  for (ChangePoint change : series.changes) {
    change.index -= static_cast<int>(cut);
    if (change.index > 0) last.changes.push_back(change);
  }
  return last;
}

}  // namespace tandem
