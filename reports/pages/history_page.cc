#include <fmt/format.h>

#include <algorithm>

#include "reports/json_fields.h"
#include "reports/pages/charts.h"
#include "reports/pages/markup.h"
#include "reports/pages/sections.h"
#include "reports/statistics.h"
#include "reports/text_table.h"

namespace tandem::pages {
namespace {

struct PageLaunch {
  double step_time = 0;
  bool is_disturbed = false;
  std::string commit, date, verdict;
};

struct PageChange {
  std::size_t launch = 0;
  double change = 0;
  double p_value = 0;
};

PageLaunch launch_of(const JsonField& field) {
  return {.step_time = field.required("step_time_ns").number(),
          .is_disturbed = field.required("disturbed").boolean(),
          .commit = field.required("commit").text(),
          .date = field.required("date").text(),
          .verdict = field.required("verdict").text()};
}

// Returns the median of the undisturbed launches in a part of the series, or of all launches if all were disturbed.
double level_of_part(const std::vector<PageLaunch>& launches, std::size_t begin, std::size_t end) {
  std::vector<double> times, all;
  for (std::size_t i = begin; i < end; ++i) {
    all.push_back(launches[i].step_time);
    if (!launches[i].is_disturbed) times.push_back(launches[i].step_time);
  }
  return median_of(times.empty() ? all : times);
}

constexpr int kMostLetters = 64;  // of a commit where the pointer rests

std::string short_commit_of(const PageLaunch& launch) {
  constexpr std::size_t kLetters = 10;
  return launch.commit.substr(0, kLetters);
}

// Draws launches as dots, the levels between change points as stairs, and the margin around the levels.
std::string chart_of(const std::vector<PageLaunch>& launches, const std::vector<PageChange>& changes, double margin) {
  Series dots{.name = "launch (hollow: disturbed)", .points = {}, .mark = Series::Mark::dots};
  for (std::size_t i = 0; i < launches.size(); ++i) {
    dots.points.emplace_back(static_cast<double>(i + 1), launches[i].step_time);
    dots.is_hollow.push_back(launches[i].is_disturbed);
    dots.remarks.push_back(cut_back(launches[i].commit, kMostLetters));
  }
  Series level{.name = "level", .points = {}, .mark = Series::Mark::stairs};
  Series above{.name = "margin above", .points = {}, .mark = Series::Mark::dashes};
  Series below{.name = "margin below", .points = {}, .mark = Series::Mark::dashes};
  std::size_t begin = 0;
  for (std::size_t part = 0; part <= changes.size(); ++part) {
    const std::size_t end = part < changes.size() ? changes[part].launch : launches.size();
    const double median = level_of_part(launches, begin, end);
    for (const std::size_t place : {begin + 1, end}) {
      const double x = static_cast<double>(place);
      level.points.emplace_back(x, median);
      above.points.emplace_back(x, median * (1 + margin));
      below.points.emplace_back(x, median / (1 + margin));
    }
    begin = end;
  }
  XyChart chart{.x = {.name = "launch"},
                .y = {.name = "step time", .unit = Unit::nanoseconds},
                .series = {std::move(dots), std::move(level), std::move(above), std::move(below)},
                .shaded_name = {}};
  for (const PageChange& change : changes) {
    chart.labels.push_back({static_cast<double>(change.launch + 1), launches[change.launch].step_time,
                            short_commit_of(launches[change.launch])});
  }
  return xy_chart("Median step time of each launch", std::move(chart));
}

// Draws a stair for each run, and the commits at which the time changed.
std::string staircase_of(const std::vector<PageLaunch>& launches, const std::vector<PageChange>& changes) {
  Series stairs{.name = "simulated step time", .points = {}, .mark = Series::Mark::stairs};
  XyChart chart{.x = {.name = "run"}, .y = {.name = "", .unit = Unit::nanoseconds}, .series = {}, .shaded_name = {}};
  const auto label = [&](std::size_t place) {
    chart.labels.push_back(
        {static_cast<double>(place + 1), launches[place].step_time, short_commit_of(launches[place])});
  };
  for (std::size_t i = 0; i < launches.size(); ++i) {
    stairs.points.emplace_back(static_cast<double>(i + 1), launches[i].step_time);
    stairs.remarks.push_back(cut_back(launches[i].commit, kMostLetters));
  }
  label(0);
  for (const PageChange& change : changes) label(change.launch);
  // Keeps stairs away from the edge, even if all are equal.
  const auto [least, most] =
      std::minmax_element(launches.begin(), launches.end(),
                          [](const auto& one, const auto& other) { return one.step_time < other.step_time; });
  chart.y.hold(least->step_time * 0.98);
  chart.y.hold(most->step_time * 1.02);
  chart.series.push_back(std::move(stairs));
  return xy_chart("Simulated step time of each run, which repeats exactly", std::move(chart));
}

std::string place_text(const JsonField& field, bool is_exact) {
  const std::string scenario = field.required("scenario").text();
  return is_exact ? fmt::format("{}, simulated on engine {}", scenario, field.required("engine").text())
                  : fmt::format("{} on {}", scenario, field.required("machine").text());
}

std::string series_section(const JsonField& field, double margin) {
  const JsonField exact = field.optional("exact");  // not in documents of earlier versions
  const bool is_exact = exact.present() && exact.boolean();
  std::vector<PageLaunch> launches;
  for (const JsonField& item : field.required("launches").items()) launches.push_back(launch_of(item));
  std::vector<PageChange> changes;
  for (const JsonField& item : field.required("changes").items()) {
    const auto place = static_cast<std::size_t>(item.required("launch").small_count());
    if (place <= (changes.empty() ? 0 : changes.back().launch) || place >= launches.size()) {
      item.error("is no place of a launch after the change before it");
      return "";
    }
    changes.push_back(
        {.launch = place, .change = item.required("change").number(), .p_value = item.required("p_value").number()});
  }
  if (launches.empty()) {
    field.error("has no launch");
    return "";
  }
  HtmlTable steps(is_exact ? "changes" : "changes, found by E-divisive; they decide nothing",
                  {"launch", "commit", "date", "change", is_exact ? "" : "p"}, 3);
  for (const PageChange& change : changes) {
    const PageLaunch& launch = launches[change.launch];
    steps.add({std::to_string(change.launch + 1), launch.commit.empty() ? "-" : launch.commit, launch.date,
               error_text(change.change), is_exact ? "" : fmt::format("{:.3f}", change.p_value)});
  }
  HtmlTable table("launches", {"launch", "commit", "date", "step time", "verdict"}, 3);
  for (std::size_t i = 0; i < launches.size(); ++i) {
    const PageLaunch& one = launches[i];
    table.add({std::to_string(i + 1), one.commit.empty() ? "-" : one.commit, one.date,
               time_text(one.step_time) + (one.is_disturbed ? " (disturbed)" : ""), one.verdict});
  }
  return section(place_text(field, is_exact),
                 (is_exact ? staircase_of(launches, changes) : chart_of(launches, changes, margin)) +
                     (changes.empty() ? "" : std::move(steps).finish()) +
                     folded("All launches", std::move(table).finish()));
}

// Pages hold at most this many series, the first ones, and the last launches of them: so many of all series together.
constexpr std::size_t kMostSeries = 40;
constexpr std::size_t kMostLaunches = 1000;

std::size_t launches_in(const Json& document) {
  std::size_t launches = 0;
  for (const Json& series : document.at("series")) launches += series.at("launches").size();
  return launches;
}

// Returns a series with its last launches, and the changes among them.
Json shortened_series(const Json& series, std::size_t most) {
  const Json& launches = series.at("launches");
  const std::size_t left_out = launches.size() - std::min(launches.size(), most);
  Json shorter = Json::object();
  for (const auto& [key, value] : series.items()) {
    if (key != "launches" && key != "changes") shorter[key] = value;
  }
  shorter["launches"] = Json::array();
  for (std::size_t i = left_out; i < launches.size(); ++i) shorter["launches"].push_back(launches[i]);
  shorter["changes"] = Json::array();
  for (const Json& change : series.at("changes")) {
    const auto place = change.at("launch").get<std::size_t>();
    if (place <= left_out) continue;
    shorter["changes"].push_back(change);
    shorter["changes"].back()["launch"] = place - left_out;
  }
  const std::size_t before = series.value("launches_left_out", std::size_t{0});
  if (left_out + before > 0) shorter["launches_left_out"] = left_out + before;
  return shorter;
}

Json shortened_history(const Json& document, std::size_t launches) {
  const Json& all = document.at("series");
  const std::size_t count = std::min(all.size(), kMostSeries);
  const std::size_t most = std::max<std::size_t>(1, launches / count);
  Json shorter = Json::object();
  for (const auto& [key, value] : document.items()) {
    if (key != "series") shorter[key] = value;
  }
  shorter["series"] = Json::array();
  for (std::size_t i = 0; i < count; ++i) shorter["series"].push_back(shortened_series(all[i], most));
  if (all.size() > count) shorter["series_left_out"] = all.size() - count;
  return shorter;
}

bool fits_page(const Json& document) {
  constexpr std::size_t kMostBytes = 300'000;
  return launches_in(document) <= kMostLaunches && document.at("series").size() <= kMostSeries &&
         document.dump(-1, ' ', false, Json::error_handler_t::replace).size() <= kMostBytes;
}

// Returns a history that a page has room for. If commits are long, it has fewer launches.
Json history_that_fits(const Json& document) {
  Json shorter;
  for (std::size_t launches = kMostLaunches; launches > 0; launches /= 2) {
    shorter = shortened_history(document, launches);
    if (fits_page(shorter)) break;
  }
  return shorter;
}

// Says what a shortened history lacks.
std::string completeness_text(const JsonField& root) {
  std::int64_t launches = 0;
  for (const JsonField& series : root.required("series").items()) {
    launches += series.optional("launches_left_out").count();
  }
  std::string text;
  if (launches > 0) {
    text += paragraph(fmt::format("The last launches of each series; {} earlier ones are not shown.", launches));
  }
  const std::int64_t series = root.optional("series_left_out").count();
  return series == 0 ? text : text + paragraph(fmt::format("{} more series are not shown.", series));
}

}  // namespace

Content history_content(const Json& document, const JsonOrigin& origin) {
  Reading reading(document, origin);
  const JsonField& root = reading.root();
  const double margin = root.required("margin").number();
  Content content{.heading = {.title = "History of step times",
                              .origin = fmt::format("of measured ones, changes of {} and more", percent_text(margin))},
                  .sections = {}};
  for (const JsonField& series : root.required("series").items())
    content.sections.push_back(series_section(series, margin));
  content.sections.insert(content.sections.begin(), completeness_text(root));
  reading.finish();
  if (fits_page(document)) return content;
  const auto shorter = std::make_shared<const Json>(history_that_fits(document));
  content = fits_page(*shorter) ? history_content(*shorter, origin.file()) : std::move(content);
  content.shortened = shorter;
  return content;
}

}  // namespace tandem::pages
