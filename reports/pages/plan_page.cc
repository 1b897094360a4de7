#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "reports/base/text_table.h"
#include "reports/pages/charts.h"
#include "reports/pages/markup.h"
#include "reports/pages/sections.h"
#include "reports/pages/sweep_points.h"
#include "reports/run/memory_json.h"

namespace tandem::pages {
namespace {

constexpr double kSecond_ns = 1e9;
constexpr std::size_t kMostDots = 1000;  // of each series
constexpr double kNear = 2;              // a picture of the search shows steps of so many times the best one's

// A point of a plan's document.
struct PlanPoint {
  PagePoint point;
  double least_step_ns = 0;  // 0: not known
  double memory_bytes = 0;   // 0: not known
};

PlanPoint plan_point(const JsonField& field) {
  PlanPoint one{.point = point_of(field)};
  if (const JsonField least = field.optional("least_step_s"); least.present())
    one.least_step_ns = least.number() * kSecond_ns;
  if (const JsonField memory = field.optional("memory_bytes"); memory.present())
    one.memory_bytes = static_cast<double>(memory_from_json(memory).total());
  return one;
}

// A picture has the first dots of those that are too many.
void add_dot(Series& series, double x, double y) {
  if (series.points.size() < kMostDots) series.points.emplace_back(x, y);
}

// What was simulated, over what the bounds had said; and the bounds of what was not.
std::string search_section(const std::vector<PlanPoint>& points, double best_ns) {
  Series simulated{.name = "simulated", .points = {}, .mark = Series::Mark::dots};
  Series ruled_out{.name = "not simulated: takes at least this", .points = {}, .mark = Series::Mark::dots};
  HtmlTable table("simulated points", {"point", "no step takes less", "step"});
  for (const PlanPoint& one : points) {
    if (one.least_step_ns <= 0 || one.least_step_ns > kNear * best_ns) continue;
    if (one.point.is_done()) {
      add_dot(simulated, one.least_step_ns, one.point.step_time);
      table.add({one.point.values_text(), time_text(one.least_step_ns), time_text(one.point.step_time)});
    } else if (one.point.state == "not run") {
      add_dot(ruled_out, one.least_step_ns, one.least_step_ns);
    }
  }
  if (simulated.points.empty()) return "";
  Series best{.name = "the best", .points = {{simulated.points.front().first, best_ns}}, .mark = Series::Mark::dashes};
  XyChart chart{.x = {.name = "no step takes less", .unit = Unit::nanoseconds},
                .y = {.name = "step", .unit = Unit::nanoseconds},
                .series = {std::move(ruled_out), std::move(simulated), std::move(best)},
                .shaded_name = {}};
  return section("The search", paragraph("Points of at most twice the best step.") +
                                   xy_chart("Steps over the times that they cannot go below", std::move(chart)) +
                                   folded("Simulated points as a table", std::move(table).finish()));
}

// The points than which none is faster with as little memory.
std::string memory_section(const std::vector<PlanPoint>& points) {
  std::vector<const PlanPoint*> done;
  for (const PlanPoint& one : points) {
    if (one.point.is_done() && one.memory_bytes > 0) done.push_back(&one);
  }
  if (done.size() < 2) return "";
  std::ranges::stable_sort(done, {}, &PlanPoint::memory_bytes);
  Series all{.name = "simulated points", .points = {}, .mark = Series::Mark::dots};
  Series front{.name = "front", .points = {}};
  HtmlTable table("points than which none is faster with as little memory", {"point", "memory", "step"});
  double fastest = std::numeric_limits<double>::infinity();
  for (const PlanPoint* one : done) {
    add_dot(all, one->memory_bytes, one->point.step_time);
    if (one->point.step_time >= fastest) continue;
    fastest = one->point.step_time;
    front.points.emplace_back(one->memory_bytes, one->point.step_time);
    table.add({one->point.values_text(), value_text(one->memory_bytes, Unit::bytes), time_text(one->point.step_time)});
  }
  XyChart chart{.x = {.name = "memory of a device", .unit = Unit::bytes},
                .y = {.name = "step", .unit = Unit::nanoseconds},
                .series = {std::move(all), std::move(front)},
                .shaded_name = {}};
  return section("Time against memory", xy_chart("Simulated points", std::move(chart)) +
                                            folded("The front as a table", std::move(table).finish()));
}

// Returns the points of `places`, which are checked.
std::vector<const PlanPoint*> points_at(const JsonField& places, const std::vector<PlanPoint>& points) {
  std::vector<const PlanPoint*> some;
  for (const JsonField& place : places.items()) {
    const auto index = static_cast<std::size_t>(place.small_count());
    if (index >= points.size()) {
      place.error("is no place of a point");
    } else {
      some.push_back(&points[index]);
    }
  }
  return some;
}

std::string best_section(const std::vector<const PlanPoint*>& best) {
  HtmlTable table("the best points", {"rank", "point", "devices", "step", "throughput", "limit", "memory"}, 2);
  std::vector<Bar> bars;
  for (std::size_t i = 0; i < best.size(); ++i) {
    const PagePoint& point = best[i]->point;
    const double memory = best[i]->memory_bytes;
    table.add({std::to_string(i + 1), point.values_text(), std::to_string(point.devices), time_text(point.step_time),
               rate_text(point.throughput, point.unit), point.limit,
               memory > 0 ? value_text(memory, Unit::bytes) : "-"});
    if (point.parts.empty()) continue;
    Bar bar{.label = fmt::format("{}. {}", i + 1, point.limit), .parts = {}};
    for (std::size_t part = 0; part < point.parts.size(); ++part)
      bar.parts.push_back(part_of_step(step_parts()[part], point.parts[part]));
    bars.push_back(std::move(bar));
  }
  return section(
      "The best points",
      std::move(table).finish() + (bars.empty() ? "" : stacked_bars("Parts of their steps", bars, Unit::nanoseconds)));
}

// What the scenario as it is becomes with some of the best point's values, and what better machines would give.
std::string changes_section(const JsonField& root) {
  HtmlTable table("other steps", {"change", "step"}, 1);
  int rows = 0;
  const auto add_row = [&](const std::string& change, const std::string& step) {
    table.add({change, step});
    ++rows;
  };
  const auto add = [&](const std::string& change, const PagePoint& point) {
    add_row(change, point.is_done() ? time_text(point.step_time) : point.state);
  };
  if (const JsonField usual = root.optional("as_it_is"); usual.present()) add("the scenario as it is", point_of(usual));
  if (const JsonField by_hand = root.optional("by_hand"); by_hand.present()) {
    for (const JsonField& change : by_hand.items()) {
      PagePoint changed;
      for (const JsonField& one : change.required("fields").items())
        changed.values.emplace_back(one.required("field").text(), one.required("to").text());
      add("with " + changed.values_text(), point_of(change.required("point")));
    }
  }
  if (const JsonField what_if = root.optional("what_if"); what_if.present()) {
    for (const JsonField& other : what_if.items()) {
      const std::string change = "the best with " + other.required("change").text();
      if (const JsonField problem = other.optional("problem"); problem.present()) {
        add_row(change, problem.text());
      } else {
        const double ratio = root.required("value").number() / other.required("value").number();
        const PagePoint point = point_of(other.required("best"));
        add_row(change, fmt::format("{}, {:.3g} times as good", time_text(point.step_time), ratio));
      }
    }
  }
  return rows == 0 ? "" : section("Changes", std::move(table).finish());
}

std::string counts_section(const JsonField& counts) {
  HtmlTable table("what became of the points", {"points", "simulated", "do not fit", "cannot run", "ruled out"}, 0);
  std::vector<std::string> row;
  for (const char* key : {"points", "simulated", "do_not_fit", "cannot_run", "ruled_out"})
    row.push_back(std::to_string(counts.required(key).count()));
  table.add(row);
  return section("Points", std::move(table).finish());
}

std::string certificate_of(const JsonField& root) {
  const double gap = root.required("gap").number_or_null();
  if (gap == 0) return "no point of this space is better";
  return std::isfinite(gap) ? fmt::format("no point of this space is better by more than {}", percent_text(gap))
                            : "of some points nothing is known";
}

}  // namespace

Content plan_content(const Json& document, const JsonOrigin& origin) {
  Reading reading(document, origin);
  const JsonField& root = reading.root();
  std::vector<PlanPoint> points;
  for (const JsonField& item : root.required("points").items()) points.push_back(plan_point(item));
  const std::vector<const PlanPoint*> best = points_at(root.required("best"), points);
  reading.finish();
  Content content{.heading = {.title = fmt::format("{}: the best of {} points for {}", root.required("scenario").text(),
                                                   points.size(), root.required("goal").text()),
                              .origin = fmt::format("planned on engine {}", root.required("engine").text())},
                  .sections = {}};
  if (!best.empty()) {
    const PagePoint& point = best.front()->point;
    content.heading.verdict =
        fmt::format("{}: {} a step; {}", point.values_text(), time_text(point.step_time), certificate_of(root));
    content.heading.verdict_class = root.required("gap").number_or_null() == 0 ? "good" : "open";
    content.sections = {best_section(best), search_section(points, point.step_time), memory_section(points),
                        changes_section(root)};
  }
  content.sections.push_back(counts_section(root.required("counts")));
  reading.finish();
  return content;
}

}  // namespace tandem::pages
