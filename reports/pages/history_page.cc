#include <fmt/format.h>

#include <algorithm>

#include "reports/base/json_fields.h"
#include "reports/base/statistics.h"
#include "reports/base/text_table.h"
#include "reports/pages/charts.h"
#include "reports/pages/markup.h"
#include "reports/pages/page.h"
#include "reports/pages/sections.h"

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

// A series as its page draws it.
struct PageSeries {
  std::string title;
  bool is_exact = false;
  std::vector<PageLaunch> launches;
  std::vector<PageChange> changes;
  std::size_t earlier = 0;  // launches that are not shown
};

PageSeries page_series_of(const JsonField& field) {
  const JsonField exact = field.optional("exact");  // not in documents of earlier versions
  PageSeries series{.title = "", .is_exact = exact.present() && exact.boolean(), .launches = {}, .changes = {}};
  series.earlier = static_cast<std::size_t>(field.optional("earlier_launches").count());
  series.title = place_text(field, series.is_exact);
  for (const JsonField& item : field.required("launches").items()) series.launches.push_back(launch_of(item));
  for (const JsonField& item : field.required("changes").items()) {
    const auto place = static_cast<std::size_t>(item.required("launch").small_count());
    if (place <= (series.changes.empty() ? 0 : series.changes.back().launch) || place >= series.launches.size()) {
      item.error("is no place of a launch after the change before it");
      continue;
    }
    series.changes.push_back(
        {.launch = place, .change = item.required("change").number(), .p_value = item.required("p_value").number()});
  }
  if (series.launches.empty()) field.error("has no launch");
  return series;
}

// Drops all but the last launches, and the changes before them.
void keep_last(PageSeries& series, std::size_t most) {
  const std::size_t dropped = series.launches.size() - std::min(series.launches.size(), most);
  series.launches.erase(series.launches.begin(), series.launches.begin() + static_cast<std::ptrdiff_t>(dropped));
  std::erase_if(series.changes, [dropped](const PageChange& change) { return change.launch <= dropped; });
  for (PageChange& change : series.changes) change.launch -= dropped;
  series.earlier += dropped;
}

std::string series_section(const PageSeries& series, double margin) {
  const auto& [title, is_exact, launches, changes, earlier] = series;
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
  return section(title, (is_exact ? staircase_of(launches, changes) : chart_of(launches, changes, margin)) +
                            (changes.empty() ? "" : std::move(steps).finish()) +
                            folded("All launches", std::move(table).finish()));
}

// A page shows the first series, and the last launches of each.
constexpr std::size_t kMostSeries = 40;

// Says what the page does not show; "" if nothing.
std::string not_shown_text(std::size_t launches, std::size_t series) {
  std::string text;
  if (launches > 0) {
    text += paragraph(fmt::format("The last launches of each series; {} earlier ones are not shown.", launches));
  }
  return series == 0 ? text : text + paragraph(fmt::format("{} more series are not shown.", series));
}

// Returns sections with as much as a page shows.
std::vector<std::string> history_sections(std::vector<PageSeries> all, double margin) {
  const std::size_t shown = std::min(all.size(), kMostSeries);
  const std::size_t most = std::max<std::size_t>(1, kMostLaunchesOfPage / std::max<std::size_t>(1, shown));
  std::size_t launches = 0, earlier = 0;
  for (std::size_t i = 0; i < shown; ++i) launches += all[i].launches.size();
  std::vector<std::string> sections(1);
  for (std::size_t i = 0; i < shown; ++i) {
    if (launches > kMostLaunchesOfPage) keep_last(all[i], most);
    earlier += all[i].earlier;
    sections.push_back(series_section(all[i], margin));
  }
  sections.front() = not_shown_text(earlier, all.size() - shown);
  return sections;
}

}  // namespace

Content history_content(const Json& document, const JsonOrigin& origin) {
  Reading reading(document, origin);
  const JsonField& root = reading.root();
  const double margin = root.required("margin").number();
  Content content{.heading = {.title = "History of step times",
                              .origin = fmt::format("of measured ones, changes of {} and more", percent_text(margin))},
                  .sections = {}};
  std::vector<PageSeries> series;
  for (const JsonField& item : root.required("series").items()) series.push_back(page_series_of(item));
  reading.finish();
  content.sections = history_sections(std::move(series), margin);
  return content;
}

}  // namespace tandem::pages
