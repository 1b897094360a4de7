#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "reports/base/json_fields.h"
#include "reports/base/statistics.h"
#include "reports/base/text_table.h"
#include "reports/checks/history.h"
#include "reports/run/report_json.h"
#include "reports/run/report_text.h"
#include "topologies/base/shown.h"

namespace tandem {
namespace {

using HistoryJson = nlohmann::ordered_json;

constexpr std::size_t kLettersOfCommit = 10;

std::string short_commit(const HistoryLaunch& launch) {
  return launch.commit.empty() ? "-" : launch.commit.substr(0, kLettersOfCommit);
}

HistoryJson launches_to_json(const std::vector<HistoryLaunch>& launches) {
  const StepFigure figure = compared_figure(launches);
  HistoryJson list = HistoryJson::array();
  for (const HistoryLaunch& launch : launches) {
    list.push_back({{"commit", launch.commit},
                    {"date", launch.date},
                    {"tandem_version", launch.tandem_version},
                    {"step_time_ns", launch.step_time.*figure},
                    {"mad_ns", launch.step_time.median_absolute_deviation},
                    {"samples", launch.step_time.samples},
                    {"disturbed", launch.disturbed},
                    {"verdict", name_of(launch.verdict)},
                    {"accepted", launch.accepted}});
    if (const auto& longer = launch.step_time.long_steps) {
      list.back()["mean_ns"] = launch.step_time.mean;
      list.back()["median_ns"] = launch.step_time.median;
      list.back()["long_steps"] = long_steps_to_json(*longer);
    }
  }
  return list;
}

// Reads a launch of a document, whose scenario and machine are those of `series`.
HistoryLaunch launch_of(const JsonField& field, const HistoryLaunch& series) {
  HistoryLaunch launch = series;
  launch.commit = field.required("commit").text();
  launch.date = field.required("date").text();
  launch.tandem_version = field.required("tandem_version").text();
  launch.step_time.mean = launch.step_time.median = field.required("step_time_ns").count();
  launch.step_time.long_steps = long_steps_from_json(field.optional("long_steps"));
  if (launch.step_time.long_steps) {
    launch.step_time.mean = field.required("mean_ns").count();
    launch.step_time.median = field.required("median_ns").count();
  }
  launch.step_time.median_absolute_deviation = field.required("mad_ns").count();
  launch.step_time.samples = field.required("samples").small_count();
  launch.disturbed = field.required("disturbed").boolean();
  launch.verdict = verdict_from_json(field.required("verdict"));
  launch.accepted = field.required("accepted").boolean();
  return launch;
}

// Reads what a document says of all launches of a series. Documents of earlier versions do not have all of it.
HistoryLaunch common_of(const JsonField& field) {
  const JsonField exact = field.optional("exact");
  HistoryLaunch launch;
  launch.scenario = field.required("scenario").text();
  launch.scenario_hash = text_or_empty(field, "scenario_hash");
  launch.engine = text_or_empty(field, "engine");
  launch.machine = field.required("machine").text();
  launch.exact = exact.present() && exact.boolean();
  return launch;
}

std::vector<HistoryLaunch> launches_from_json(const JsonField& field, const HistoryLaunch& common) {
  std::vector<HistoryLaunch> launches;
  for (const JsonField& item : field.items()) launches.push_back(launch_of(item, common));
  if (launches.empty() && field.present()) field.error("has no launch");
  return launches;
}

HistorySeries series_from_json(const JsonField& field) {
  HistorySeries series{.launches = launches_from_json(field.required("launches"), common_of(field))};
  for (const JsonField& item : field.required("changes").items()) {
    const int place = item.required("launch").small_count();
    const int before = series.changes.empty() ? 0 : series.changes.back().index;
    if (place <= before || static_cast<std::size_t>(place) >= series.launches.size()) {
      item.error("is no place of a launch after the change before it");
      continue;
    }
    series.changes.push_back(
        {.index = place, .change = item.required("change").number(), .p_value = item.required("p_value").number()});
  }
  return series;
}

// The parts of a series between its change points.
struct Level {
  std::size_t begin = 0, end = 0;
  const ChangePoint* change = nullptr;  // the change at its beginning
};

std::vector<Level> levels_of(const HistorySeries& series) {
  std::vector<Level> levels = {{0, series.launches.size(), nullptr}};
  for (const ChangePoint& change : series.changes) {
    levels.back().end = static_cast<std::size_t>(change.index);
    levels.push_back({static_cast<std::size_t>(change.index), series.launches.size(), &change});
  }
  return levels;
}

std::string level_time(const HistorySeries& series, const Level& level) {
  const StepFigure figure = compared_figure(series.launches);
  std::vector<Nanoseconds> times;
  for (std::size_t i = level.begin; i < level.end; ++i) {
    if (!series.launches[i].disturbed) times.push_back(series.launches[i].step_time.*figure);
  }
  if (times.empty()) return "-";
  const Nanoseconds median = median_of(times);
  const auto deviation = static_cast<double>(median_absolute_deviation(times));
  if (series.is_exact()) return time_text(median);
  return fmt::format("{} (MAD {})", time_text(median), percent_text(deviation / static_cast<double>(median)));
}

std::string series_text(const HistorySeries& series) {
  const HistoryLaunch& last = series.launches.back();
  std::size_t disturbed = 0;
  for (const HistoryLaunch& launch : series.launches) disturbed += launch.disturbed ? 1 : 0;
  const StepFigure figure = compared_figure(series.launches);
  std::string text = shown(series.text()) + "\n";
  text += fmt::format("{} launches{}; the last one {}, {}, {}\n", series.launches.size(),
                      series.is_exact() ? "" : fmt::format(", {} of them disturbed", disturbed),
                      time_text(last.step_time.*figure), shown(last.date), name_of(last.verdict));
  TextTable table(2);
  table.add({"from", "commit", "launches", "step time", "change", "p"});
  table.add_rule();
  for (const Level& level : levels_of(series)) {
    const HistoryLaunch& first = series.launches[level.begin];
    table.add({first.date, short_commit(first), std::to_string(level.end - level.begin), level_time(series, level),
               level.change != nullptr ? error_text(level.change->change) : "",
               level.change != nullptr && !series.is_exact() ? fmt::format("{:.3f}", level.change->p_value) : ""});
  }
  text += "\n" + table.text();
  if (const std::string longer = long_steps_text(last.step_time); !longer.empty()) {
    text += fmt::format("step times are {}s; of the last launch, median {}: {}\n", name_of(figure),
                        time_text(last.step_time.median), longer);
  }
  if (series.is_shortened()) text += fmt::format("changes are those of the last {} launches\n", kMostSearched);
  return text;
}

std::string exact_check_text(const HistoryResult& result) {
  std::string text = fmt::format("{}: {}\nstep time {}", shown(result.launches.front().scenario),
                                 name_of(result.verdict), time_text(result.step_time));
  if (result.change != 0) text += fmt::format(" ({})", error_text(result.change));
  return text + "\n" + shown(result.reason) + "\n";
}

}  // namespace

HistoryJson history_check_to_json(const HistoryResult& result, const HistoryLimits& limits) {
  HistoryJson json = document_of("history_check");
  const bool is_exact = result.launches.front().exact;
  json["verdict"] = name_of(result.verdict);
  json["scenario"] = result.launches.front().scenario;
  json["machine"] = result.launches.front().machine;
  json["exact"] = is_exact;
  json["step_time_ns"] = result.step_time;
  json["known_launches"] = result.known;
  json["level_ns"] = result.level ? HistoryJson(result.level->step_time) : HistoryJson();
  if (!is_exact) json["spread"] = result.level ? HistoryJson(result.level->spread) : HistoryJson();
  json["change"] = result.change;
  if (!is_exact) {
    json["z"] = result.z;
    json["z_limit"] = limits.z;
    json["margin"] = limits.margin;
    json["visible_change"] = result.visible;
  }
  json["reasons"] = {result.reason};
  json["launches"] = launches_to_json(result.launches);
  return json;
}

HistoryResult history_check_from_json(const nlohmann::ordered_json& document, const JsonOrigin& origin) {
  Reading reading(document, origin);
  const JsonField& root = reading.root();
  HistoryResult result{.verdict = verdict_from_json(root.required("verdict")),
                       .known = root.required("known_launches").small_count(),
                       .step_time = root.required("step_time_ns").count(),
                       .change = root.required("change").number_or_null()};
  result.launches = launches_from_json(root.required("launches"), common_of(root));
  const bool is_exact = !result.launches.empty() && result.launches.front().exact;
  if (const JsonField level = root.required("level_ns"); level.present() && !level.is_null()) {
    result.level = HistoryLevel{.launches = result.known, .step_time = level.count()};
    if (!is_exact) result.level->spread = root.required("spread").number();
  }
  if (!is_exact) {
    result.z = root.required("z").number();
    result.visible = root.required("visible_change").number();
  }
  for (const JsonField& reason : root.required("reasons").items()) result.reason = reason.text();
  reading.finish();
  return result;
}

std::string history_check_text(const HistoryResult& result) {
  const HistoryLaunch& launch = result.launches.front();
  if (launch.exact) return exact_check_text(result);
  std::string text = fmt::format("{}: {}\n", shown(launch.scenario), name_of(result.verdict));
  text += fmt::format("step time {}", time_text(result.step_time));
  if (result.level) {
    text += fmt::format(", level {} ({}), spread of {} launches {}", time_text(result.level->step_time),
                        error_text(result.change), result.level->launches, percent_text(result.level->spread));
  }
  text += "\n" + shown(result.reason) + "\n";
  if (result.level) {
    text += fmt::format("a change of less than {} would not be seen\n", percent_text(result.visible));
  }
  return text + "machine: " + shown(launch.machine) + "\n";
}

HistoryJson history_to_json(const std::vector<HistorySeries>& all, double margin) {
  HistoryJson json = document_of("history");
  json["margin"] = margin;
  json["series"] = HistoryJson::array();
  for (const HistorySeries& series : all) {
    const HistoryLaunch& last = series.launches.back();
    HistoryJson one = {{"scenario", last.scenario},
                       {"scenario_hash", last.scenario_hash},
                       {"engine", last.engine},
                       {"machine", last.machine},
                       {"exact", last.exact},
                       {"launches", launches_to_json(series.launches)},
                       {"changes", HistoryJson::array()}};
    for (const ChangePoint& change : series.changes) {
      const HistoryLaunch& first = series.launches[static_cast<std::size_t>(change.index)];
      one["changes"].push_back({{"launch", change.index},
                                {"commit", first.commit},
                                {"date", first.date},
                                {"change", change.change},
                                {"p_value", change.p_value}});
    }
    if (series.earlier > 0) one["earlier_launches"] = series.earlier;  // the page says so; no file has it
    json["series"].push_back(std::move(one));
  }
  return json;
}

StoredHistory history_from_json(const nlohmann::ordered_json& document, const JsonOrigin& origin) {
  Reading reading(document, origin);
  const JsonField& root = reading.root();
  StoredHistory history{.series = {}, .margin = root.required("margin").number()};
  for (const JsonField& item : root.required("series").items()) history.series.push_back(series_from_json(item));
  reading.finish();
  return history;
}

std::string history_text(const std::vector<HistorySeries>& all, double margin) {
  std::string text;
  for (const HistorySeries& series : all) text += series_text(series) + "\n";
  const bool is_measured = std::any_of(all.begin(), all.end(), [](const auto& series) { return !series.is_exact(); });
  if (!is_measured) return text;
  return text + fmt::format("{}changes of {} and more, found by E-divisive; they decide nothing\n",
                            all.size() > 1 ? "of measured scenarios, " : "", percent_text(margin));
}

}  // namespace tandem
