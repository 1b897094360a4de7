#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "reports/base/json_fields.h"
#include "reports/base/text_table.h"
#include "reports/pages/charts.h"
#include "reports/pages/markup.h"
#include "reports/pages/sections.h"
#include "reports/pages/sweep_points.h"
#include "topologies/price.h"

namespace tandem::pages {
namespace {

// Pages draw at most this many points: those of the front, then the fastest.
constexpr std::size_t kMostPoints = 1000;

// Returns the places of the points that a page draws; the fastest point is always among them.
std::set<std::size_t> drawn_points(const Points& points, const JsonField& root) {
  std::vector<std::size_t> ranking(points.size());
  for (std::size_t i = 0; i < ranking.size(); ++i) ranking[i] = i;
  std::stable_sort(ranking.begin(), ranking.end(),
                   [&](std::size_t a, std::size_t b) { return points[a].throughput > points[b].throughput; });
  std::set<std::size_t> drawn{ranking.front()};
  for (const JsonField& front : {root.required("pareto_front"), root.optional("cost_front")}) {
    for (const JsonField& place : front.items()) {
      if (drawn.size() < kMostPoints) drawn.insert(static_cast<std::size_t>(place.small_count()));
    }
  }
  for (std::size_t i = 0; i < ranking.size() && drawn.size() < kMostPoints; ++i) drawn.insert(ranking[i]);
  return drawn;
}

// Draws throughputs over the cost of a million units, if the machines have prices.
std::string cost_section(const Points& points, const std::set<std::size_t>& drawn, const JsonField& root) {
  Series all{.name = "points", .points = {}, .mark = Series::Mark::dots};
  Series front{.name = "front", .points = {}};
  for (const std::size_t place : drawn) {
    if (points[place].is_done()) all.points.emplace_back(points[place].cost_per_million, points[place].throughput);
  }
  HtmlTable table("points that no other one beats", {"point", "cost of a million", "throughput", "limit"});
  std::string currency;
  for (const JsonField& place : root.optional("cost_front").items()) {
    const auto index = static_cast<std::size_t>(place.small_count());
    if (!drawn.contains(index)) continue;
    const PagePoint& point = points[index];
    currency = point.currency;
    front.points.emplace_back(point.cost_per_million, point.throughput);
    table.add({point.values_text(), money_text(point.cost_per_million, point.currency),
               rate_text(point.throughput, point.unit), point.limit});
  }
  if (front.points.empty()) return "";
  XyChart chart{.x = {.name = fmt::format("cost of a million, {}", currency)},
                .y = {.name = "throughput, " + unit_of(points), .is_logarithmic = true},
                .series = {std::move(all), std::move(front)},
                .shaded_name = {}};
  return section("Throughput against cost",
                 xy_chart("All points, and those than which none is faster for less", std::move(chart)) +
                     folded("The front of cost as a table", std::move(table).finish()));
}

std::string front_section(const Points& points, const std::set<std::size_t>& drawn, const JsonField& root) {
  Series all{.name = "points", .points = {}, .mark = Series::Mark::dots};
  Series front{.name = "front", .points = {}};
  for (const std::size_t place : drawn) {
    if (points[place].is_done()) all.points.emplace_back(points[place].devices, points[place].throughput);
  }
  HtmlTable table("points that no other one beats", {"point", "devices", "throughput", "limit"});
  for (const JsonField& place : root.required("pareto_front").items()) {
    const auto index = static_cast<std::size_t>(place.small_count());
    if (!drawn.contains(index)) continue;
    const PagePoint& point = points[index];
    front.points.emplace_back(point.devices, point.throughput);
    table.add(
        {point.values_text(), std::to_string(point.devices), rate_text(point.throughput, point.unit), point.limit});
  }
  if (front.points.empty()) return "";
  XyChart chart{.x = devices_axis(),
                .y = {.name = "throughput, " + unit_of(points), .is_logarithmic = true},
                .series = {std::move(all), std::move(front)},
                .shaded_name = {}};
  return section("Throughput against devices",
                 xy_chart("All points and those that no other one beats", std::move(chart)) +
                     folded("The front as a table", std::move(table).finish()));
}

// Shows the best throughput over the two fields with the most values.
std::string parameters_section(const Points& points) {
  constexpr std::size_t kMostValues = 64;
  std::vector<std::pair<std::size_t, std::size_t>> fields;  // number of values, place
  for (std::size_t i = 0; i < points.front().values.size(); ++i) {
    const std::size_t count = values_of(points, i).size();
    if (count > 1 && count <= kMostValues) fields.emplace_back(count, i);
  }
  if (fields.size() < 2) return "";
  std::stable_sort(fields.begin(), fields.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  const std::size_t across = fields[0].second, down = fields[1].second;
  const auto& names = points.front().values;
  HeatMap map{.rows = {}, .columns = values_of(points, across), .values = {}, .column_name = names[across].first};
  const std::vector<std::string> rows = values_of(points, down);
  map.values.assign(rows.size(), std::vector<double>(map.columns.size(), std::numeric_limits<double>::quiet_NaN()));
  for (const PagePoint& point : points) {
    if (!point.is_done()) continue;
    const auto place = [](const std::vector<std::string>& values, const std::string& value) {
      return static_cast<std::size_t>(std::find(values.begin(), values.end(), value) - values.begin());
    };
    double& cell = map.values[place(rows, point.values[down].second)][place(map.columns, point.values[across].second)];
    cell = std::isnan(cell) ? point.throughput : std::max(cell, point.throughput);
  }
  for (const std::string& row : rows) map.rows.push_back(names[down].first + " " + row);
  return section("Two fields",
                 paragraph(fmt::format("The best throughput ({}) over all other fields; an empty cell has no "
                                       "point with a result.",
                                       unit_of(points))) +
                     heat_map(fmt::format("Throughput by {} and {}", names[across].first, names[down].first), map));
}

// Shows the steps of the fastest points, and what limits each.
std::string limits_section(const Points& points) {
  std::vector<const PagePoint*> fastest;
  for (const PagePoint& point : points) {
    if (point.is_done()) fastest.push_back(&point);
  }
  std::stable_sort(fastest.begin(), fastest.end(),
                   [](const PagePoint* a, const PagePoint* b) { return a->throughput > b->throughput; });
  if (fastest.empty()) return "";
  constexpr std::size_t kMostBars = 20;
  std::vector<Bar> bars;
  HtmlTable table("the fastest points", {"rank", "point", "devices", "throughput", "step time", "limit"}, 2);
  for (std::size_t i = 0; i < std::min<std::size_t>(fastest.size(), 200); ++i) {
    const PagePoint& point = *fastest[i];
    table.add({std::to_string(i + 1), point.values_text(), std::to_string(point.devices),
               rate_text(point.throughput, point.unit), time_text(point.step_time), point.limit});
    if (i >= kMostBars || point.parts.empty()) continue;
    Bar bar{.label = fmt::format("{}. {} devices, {}", i + 1, point.devices, point.limit), .parts = {}};
    for (std::size_t part = 0; part < point.parts.size(); ++part) {
      bar.parts.push_back(part_of_step(step_parts()[part], point.parts[part]));
    }
    bars.push_back(std::move(bar));
  }
  return section("What limits the fastest points",
                 stacked_bars("Parts of the step of the fastest points", bars, Unit::nanoseconds) +
                     folded("As a table", std::move(table).finish()));
}

std::string crossings_section(const JsonField& root) {
  HtmlTable table("where one strategy overtakes another", {"field", "below", "above", "between"}, 3);
  bool any = false;
  for (const JsonField& item : root.required("crossings").items()) {
    table.add({item.required("field").text(), item.required("below").text(), item.required("above").text(),
               fmt::format("{:.4g} and {:.4g}, about {:.4g}", item.required("from").number(),
                           item.required("to").number(), item.required("at").number())});
    any = true;
  }
  return any ? section("Crossings", std::move(table).finish()) : "";
}

std::string problems_section(const Points& points) {
  constexpr int kMostRows = 200;
  HtmlTable table("points without a result", {"point", "state", "why"}, 3);
  int count = 0;
  for (const PagePoint& point : points) {
    if (!point.is_done() && ++count <= kMostRows) table.add({point.values_text(), point.state, point.problem});
  }
  if (count == 0) return "";
  return section("Points without a result",
                 folded(fmt::format("{} points{}", count, count > kMostRows ? ", the first 200 shown" : ""),
                        std::move(table).finish()));
}

std::string sweep_notes(const JsonField& root) {
  std::vector<std::string> notes;
  for (const JsonField& note : root.optional("notes").items()) notes.push_back(note.text());
  return notes.empty() ? "" : section("Notes", bullets(notes));
}

// Says which points are not drawn.
std::string not_drawn_text(std::size_t points, std::size_t drawn) {
  if (points == drawn) return "";
  return paragraph(
      fmt::format("Figures and tables are of all {} points. The page draws {} as dots: those that no other one beats "
                  "and the fastest.",
                  points, drawn));
}

// Checks that fronts consist of places of points, on which the choice of points relies.
void check_fronts(const JsonField& root, std::size_t points) {
  for (const JsonField& front : {root.required("pareto_front"), root.optional("cost_front")}) {
    for (const JsonField& place : front.items()) {
      if (static_cast<std::size_t>(place.small_count()) >= points) place.error("is no place of a point");
    }
  }
}

}  // namespace

Content sweep_content(const Json& document, const JsonOrigin& origin) {
  Reading reading(document, origin);
  const JsonField& root = reading.root();
  Points points;
  for (const JsonField& item : root.required("points").items()) points.push_back(point_of(item));
  for (const PagePoint& point : points) {
    if (point.values.size() != points.front().values.size()) root.required("points").error("have different fields");
  }
  check_fronts(root, points.size());
  reading.finish();
  Content content{.heading = {.title = fmt::format("{}: {} points", root.required("scenario").text(), points.size()),
                              .origin = fmt::format("swept on engine {}", root.required("engine").text())},
                  .sections = {}};
  if (points.empty()) return content;
  const auto best = std::max_element(
      points.begin(), points.end(), [](const PagePoint& a, const PagePoint& b) { return a.throughput < b.throughput; });
  if (best->is_done()) {
    content.heading.verdict =
        fmt::format("fastest: {} with {}", rate_text(best->throughput, best->unit), best->values_text());
    content.heading.verdict_class = "good";
  }
  const std::set<std::size_t> drawn = drawn_points(points, root);
  content.sections = {not_drawn_text(points.size(), drawn.size()),
                      scaling_section(points),
                      front_section(points, drawn, root),
                      cost_section(points, drawn, root),
                      parameters_section(points),
                      limits_section(points),
                      crossings_section(root),
                      problems_section(points),
                      sweep_notes(root)};
  reading.finish();
  return content;
}

}  // namespace tandem::pages
