// The points of a sweep, and how their throughput scales.
#include "reports/pages/sweep_points.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "reports/base/text_table.h"
#include "reports/pages/charts.h"
#include "reports/pages/markup.h"
#include "reports/pages/sections.h"
#include "reports/run/model_work.h"
#include "reports/run/model_work_json.h"
#include "reports/sweep/sweep_table.h"

namespace tandem::pages {
namespace {

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

}  // namespace

std::string PagePoint::values_text() const {
  std::vector<std::string> texts;
  for (const auto& [field, value] : values) texts.push_back(fmt::format("{} {}", field, value));
  return fmt::format("{}", fmt::join(texts, ", "));
}

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
  if (const JsonField rates = field.optional("rates"); rates.present()) {
    point.cost_per_million = rates_from_json(rates).cost_per_unit * kMillion;
  }
  point.currency = text_or_empty(field, "currency");
  if (point.limit == kUnknownLimit) return point;
  for (const StepPart& part : step_parts()) {
    point.parts.push_back(field.required("per_step_ns").required(part.name).number());
  }
  return point;
}

std::vector<std::string> values_of(const Points& points, std::size_t field) {
  std::vector<std::string> values;
  for (const PagePoint& point : points) {
    const std::string& value = point.values[field].second;
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
  }
  return values;
}

std::string unit_of(const Points& points) {
  const auto done = std::find_if(points.begin(), points.end(), [](const PagePoint& point) { return point.is_done(); });
  return done == points.end() ? "" : done->unit;
}

Axis devices_axis() {
  return {.name = "devices", .unit = Unit::count, .is_logarithmic = true};
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
    Series throughput{.name = strategy, .points = {}, .mark = mark};
    Series efficiency{.name = strategy, .points = {}, .mark = mark};
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

}  // namespace tandem::pages
