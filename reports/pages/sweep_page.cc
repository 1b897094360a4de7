#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "reports/json_fields.h"
#include "reports/model_work_json.h"
#include "reports/pages/charts.h"
#include "reports/pages/markup.h"
#include "reports/pages/sections.h"
#include "reports/text_table.h"
#include "topologies/price.h"

namespace tandem::pages {
namespace {

struct PagePoint {
  std::vector<std::pair<std::string, std::string>> values;
  std::string state, problem, strategy, unit, limit;
  int devices = 0;
  double throughput = 0;
  double step_time = 0;
  double cost_per_million = 0;  // of its units; 0: unknown
  std::string currency;
  std::vector<double> parts;  // of step_parts()

  bool is_done() const { return throughput > 0; }
  std::string values_text() const {
    std::vector<std::string> texts;
    for (const auto& [field, value] : values) texts.push_back(fmt::format("{} {}", field, value));
    return fmt::format("{}", fmt::join(texts, ", "));
  }
};

PagePoint point_of(const JsonField& field) {
  PagePoint point;
  for (const auto& [name, value] : field.required("values").entries()) point.values.emplace_back(name, value.text());
  point.state = field.required("state").text();
  point.problem = text_or_empty(field, "problem");
  point.strategy = text_or_empty(field, "strategy");
  point.limit = text_or_empty(field, "limit");
  if (const JsonField devices = field.optional("devices"); devices.present()) point.devices = devices.small_count();
  const JsonField throughput = field.optional("throughput");
  if (!throughput.present()) return point;
  point.throughput = throughput.required("value").number_or_null();
  point.unit = throughput.required("unit").text();
  point.step_time = field.required("step_time_ns").number();
  constexpr double kMillion = 1e6;
  if (const JsonField rates = field.optional("rates"); rates.present()) {
    point.cost_per_million = rates_from_json(rates).cost_per_unit * kMillion;
  }
  point.currency = text_or_empty(field, "currency");
  for (const StepPart& part : step_parts()) {
    point.parts.push_back(field.required("per_step_ns").required(part.name).number());
  }
  return point;
}

using Points = std::vector<PagePoint>;

// Collects values in the order in which they occur, which is that of the sweep.
std::vector<std::string> values_of(const Points& points, std::size_t field) {
  std::vector<std::string> values;
  for (const PagePoint& point : points) {
    const std::string& value = point.values[field].second;
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
  }
  return values;
}

// Returns the unit of throughput; "" if no point has a result.
std::string unit_of(const Points& points) {
  const auto done = std::find_if(points.begin(), points.end(), [](const PagePoint& point) { return point.is_done(); });
  return done == points.end() ? "" : done->unit;
}

// The point with the best throughput, by number of devices.
using Scaling = std::map<int, const PagePoint*>;

// Returns the swept fields that choose a machine, by their places: efficiencies on different machines do not compare.
// The number of machines chooses none.
std::vector<std::size_t> fields_of_machine(const Points& points) {
  std::vector<std::size_t> fields;
  for (std::size_t i = 0; i < points.front().values.size(); ++i) {
    const std::string& name = points.front().values[i].first;
    const bool is_of_machine = name.starts_with("topology") || name == "devices.type" || name.starts_with("engine");
    if (is_of_machine && !name.ends_with(".workers") && values_of(points, i).size() > 1) fields.push_back(i);
  }
  return fields;
}

// Returns the best points of each strategy on each machine, by a text that names both.
std::map<std::string, Scaling> best_points_by_strategy(const Points& points) {
  const std::vector<std::size_t> machine = fields_of_machine(points);
  std::map<std::string, Scaling> best;
  for (const PagePoint& point : points) {
    if (!point.is_done()) continue;
    std::string name = point.strategy;
    for (const std::size_t field : machine) name += ", " + point.values[field].second;
    const PagePoint*& known = best[name][point.devices];
    if (known == nullptr || point.throughput > known->throughput) known = &point;
  }
  return best;
}

// Returns the throughput of a device, relative to that on the fewest devices.
double efficiency_of(const PagePoint& point, const Scaling& scaling) {
  const PagePoint& first = *scaling.begin()->second;
  return point.throughput / point.devices / (first.throughput / first.devices);
}

Axis devices_axis() {
  return {.name = "devices", .unit = Unit::count, .is_logarithmic = true};
}

// Linear scaling starts from the strategy that is the fastest for each of the fewest devices.
Series linear_scaling(const std::map<std::string, Scaling>& best) {
  Series linear{.name = "linear", .points = {}, .mark = Series::Mark::dashes};
  double per_device = 0;
  for (const auto& [strategy, scaling] : best) {
    const auto& [fewest, first] = *scaling.begin();
    if (scaling.size() < 2 || first->throughput / fewest <= per_device) continue;
    const int most = scaling.rbegin()->first;
    per_device = first->throughput / fewest;
    linear.points = {{fewest, first->throughput}, {most, per_device * most}};
  }
  return linear;
}

// The color of the part of the step that limits a point.
std::string css_class_of_limit(const std::string& limit) {
  if (limit == "compute" || limit == "communication" || limit == "input") return limit;
  return limit == "waiting" ? "idle" : "other";
}

// Returns what limits the best point of each number of devices, for a few strategies.
std::vector<AxisRow> limit_rows(const std::map<std::string, Scaling>& best) {
  constexpr std::size_t kMostRows = 8;
  std::vector<AxisRow> rows;
  for (const auto& [strategy, scaling] : best) {
    if (rows.size() == kMostRows) break;
    AxisRow row{.name = strategy, .cells = {}};
    for (const auto& [devices, point] : scaling) {
      row.cells.push_back(
          {.x = static_cast<double>(devices), .text = point->limit, .css_class = css_class_of_limit(point->limit)});
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string scaling_section(const Points& points) {
  const auto best = best_points_by_strategy(points);
  if (best.empty()) return "";
  XyChart throughputs{.x = devices_axis(),
                      .y = {.name = "throughput, " + unit_of(points), .is_logarithmic = true},
                      .series = {},
                      .shaded_name = {}};
  XyChart efficiencies{.x = devices_axis(),
                       .y = {.name = "efficiency", .unit = Unit::percent},
                       .series = {},
                       .shaded_name = {},
                       .rows = limit_rows(best)};
  HtmlTable table("the best of each number of devices",
                  {"strategy", "devices", "throughput", "of linear scaling", "limited by"});
  for (const auto& [strategy, scaling] : best) {
    const Series::Mark mark = scaling.size() > 1 ? Series::Mark::line : Series::Mark::dots;
    Series throughput{.name = strategy, .points = {}, .mark = mark}, efficiency = throughput;
    for (const auto& [devices, point] : scaling) {
      const double share = efficiency_of(*point, scaling);
      throughput.points.emplace_back(devices, point->throughput);
      efficiency.points.emplace_back(devices, share);
      table.add({strategy, std::to_string(devices), fmt::format("{:.4g}", point->throughput), percent_text(share),
                 point->limit});
    }
    throughputs.series.push_back(std::move(throughput));
    efficiencies.series.push_back(std::move(efficiency));
  }
  for (const double end : {0.0, 1.0}) efficiencies.y.hold(end);
  if (Series linear = linear_scaling(best); !linear.points.empty()) throughputs.series.push_back(std::move(linear));
  return section("Scaling",
                 xy_chart("Best throughput by number of devices", std::move(throughputs)) +
                     paragraph("Efficiency is the throughput of a device relative to that on the fewest "
                               "devices. Below the axis is what limits the step.") +
                     xy_chart("Efficiency by number of devices, and what limits it", std::move(efficiencies)) +
                     folded("As a table", std::move(table).finish()));
}

// Pages hold at most this many points: those of the front, then the fastest. They are fewer if their texts are long.
constexpr std::size_t kMostPoints = 1000;

// Returns the places of `most` points that a page holds; the fastest point is always among them.
std::set<std::size_t> kept_points(const Points& points, const JsonField& root, std::size_t most) {
  std::vector<std::size_t> ranking(points.size());
  for (std::size_t i = 0; i < ranking.size(); ++i) ranking[i] = i;
  std::stable_sort(ranking.begin(), ranking.end(),
                   [&](std::size_t a, std::size_t b) { return points[a].throughput > points[b].throughput; });
  std::set<std::size_t> kept{ranking.front()};
  for (const JsonField& front : {root.required("pareto_front"), root.optional("cost_front")}) {
    for (const JsonField& place : front.items()) {
      if (kept.size() < most) kept.insert(static_cast<std::size_t>(place.small_count()));
    }
  }
  for (std::size_t i = 0; i < ranking.size() && kept.size() < most; ++i) kept.insert(ranking[i]);
  return kept;
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
    if (i >= kMostBars) continue;
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

// Returns the document with only the `kept` points, the fastest among them.
Json shortened_sweep(const Json& document, const std::set<std::size_t>& kept, std::size_t fastest) {
  Json shorter = Json::object();
  for (const auto& [key, value] : document.items()) {
    if (key != "points") shorter[key] = value;
  }
  shorter["points"] = Json::array();
  std::map<std::size_t, std::size_t> places;
  for (const std::size_t place : kept) {
    places[place] = shorter["points"].size();
    shorter["points"].push_back(document.at("points").at(place));
  }
  for (const char* name : {"pareto_front", "cost_front"}) {
    if (!document.contains(name)) continue;
    Json front = Json::array();
    for (const Json& place : document.at(name)) {
      if (const auto found = places.find(place.get<std::size_t>()); found != places.end())
        front.push_back(found->second);
    }
    shorter[name] = std::move(front);
  }
  shorter["best"] = places.at(fastest);
  shorter["points_left_out"] = document.at("points").size() - kept.size();
  return shorter;
}

struct KeptPoints {
  std::set<std::size_t> places;
  std::shared_ptr<const Json> document{};  // with these points only; null: with all
};

KeptPoints points_that_fit(const Json& document, const Points& points, const JsonField& root, std::size_t fastest) {
  constexpr std::size_t kMostBytes = 400'000;
  const auto fits = [](const Json& one) {
    return one.dump(-1, ' ', false, Json::error_handler_t::replace).size() <= kMostBytes;
  };
  KeptPoints kept{.places = kept_points(points, root, kMostPoints)};
  if (kept.places.size() == points.size() && fits(document)) return kept;
  for (std::size_t most = kMostPoints; most > 0; most /= 2) {
    kept.places = kept_points(points, root, most);
    kept.document = std::make_shared<const Json>(shortened_sweep(document, kept.places, fastest));
    if (fits(*kept.document)) break;
  }
  return kept;
}

// Says which points are missing, and why.
std::string completeness_text(const Points& points, std::size_t kept, const JsonField& root) {
  std::string text;
  if (const JsonField left_out = root.optional("points_left_out"); left_out.present() && left_out.count() > 0) {
    text += fmt::format("{} more points had no room in the page that this was read from; nothing below counts them.",
                        left_out.count());
  } else if (points.size() > kept) {
    text += fmt::format(
        "Figures and tables are of all {} points. The page keeps {}, which are drawn as dots: those "
        "that no other one beats and the fastest.",
        points.size(), kept);
  }
  return text.empty() ? "" : paragraph(text);
}

// Checks that fronts consist of places of points, on which shortening a page relies.
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
  const KeptPoints kept = points_that_fit(document, points, root, static_cast<std::size_t>(best - points.begin()));
  content.shortened = kept.document;
  content.sections = {completeness_text(points, kept.places.size(), root),
                      scaling_section(points),
                      front_section(points, kept.places, root),
                      cost_section(points, kept.places, root),
                      parameters_section(points),
                      limits_section(points),
                      crossings_section(root),
                      problems_section(points),
                      sweep_notes(root)};
  reading.finish();
  return content;
}

}  // namespace tandem::pages
