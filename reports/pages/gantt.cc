#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "reports/base/text_table.h"
#include "reports/pages/charts.h"
#include "reports/pages/markup.h"
#include "reports/pages/plot.h"
#include "reports/run/report_text.h"

namespace tandem::pages {
namespace {

constexpr double kLaneHeight = 18, kLaneGap = 3, kLanesTop = 26;

std::string label_of(const StepLane& lane) {
  if (!lane.label.empty()) return lane.label;
  const std::string label = stream_label(lane);
  return lane.devices > 1 ? fmt::format("{} (x{})", label, lane.devices) : label;
}

void draw_lane(Svg& svg, const StepLane& lane, double y, double width_of_ns) {
  svg.text(kLabelWidth - 8, y + 13, label_of(lane), "end", "small");
  svg.line(kLabelWidth, y + kLaneHeight, kLabelWidth + kPlotWidth, y + kLaneHeight, "grid");
  for (const StepBar& bar : lane.bars) {
    const double x = kLabelWidth + static_cast<double>(bar.start) * width_of_ns;
    const double width = std::max(0.2, static_cast<double>(bar.end - bar.start) * width_of_ns);
    svg.rect(x, y, width, kLaneHeight, css_class_of(bar.category),
             fmt::format("{}, {} from {} on{}", bar.name, time_text(bar.end - bar.start), time_text(bar.start),
                         bar.arrived_last ? "; the others waited for it" : ""));
    if (bar.arrived_last) svg.polygon({{x - 3, y}, {x + 3, y}, {x, y + 6}}, "last");
  }
}

void draw_categories(Svg& svg) {
  double x = kLabelWidth;
  for (const Category category :
       {Category::compute, Category::update, Category::input, Category::communication, Category::other}) {
    svg.rect(x, 4, 14, 12, css_class_of(category));
    svg.text(x + 19, 15, name_of(category));
    x += 34 + kCharacter * static_cast<double>(name_of(category).size());
  }
  svg.rect(x, 10, 14, 5, "critical");
  svg.text(x + 19, 15, "critical path");
  svg.polygon({{x + 116, 4}, {x + 122, 4}, {x + 119, 10}}, "last");
  svg.text(x + 128, 15, "arrived last");
}

bool is_critical(const StepPicture& picture, std::size_t lane, const StepBar& bar) {
  return std::any_of(picture.critical_stretches.begin(), picture.critical_stretches.end(),
                     [&](const CriticalStretch& one) {
                       return static_cast<std::size_t>(one.lane) == lane && one.start < bar.end && bar.start < one.end;
                     });
}

// Returns how long each stream works on what, and how much of the critical path is on it.
std::string streams_table(const StepPicture& picture) {
  HtmlTable table("time of each stream in the step",
                  {"stream", "compute", "update", "input", "communication", "other", "on the critical path"});
  for (std::size_t i = 0; i < picture.lanes.size(); ++i) {
    std::map<Category, Nanoseconds> times;
    Nanoseconds critical = 0;
    for (const StepBar& bar : picture.lanes[i].bars) times[bar.category] += bar.end - bar.start;
    for (const CriticalStretch& one : picture.critical_stretches) {
      if (static_cast<std::size_t>(one.lane) == i) critical += one.end - one.start;
    }
    table.add({label_of(picture.lanes[i]), time_text(times[Category::compute]), time_text(times[Category::update]),
               time_text(times[Category::input]), time_text(times[Category::communication]),
               time_text(times[Category::other]), time_text(critical)});
  }
  return std::move(table).finish();
}

// Returns the longest bars in the order of their times.
std::string longest_table(const StepPicture& picture) {
  struct Place {
    std::size_t lane;
    const StepBar* bar;
  };
  constexpr std::size_t kMostLongest = 200;
  std::vector<Place> places;
  for (std::size_t i = 0; i < picture.lanes.size(); ++i) {
    for (const StepBar& bar : picture.lanes[i].bars) places.push_back({i, &bar});
  }
  const std::size_t all = places.size();
  std::stable_sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    return a.bar->end - a.bar->start > b.bar->end - b.bar->start;
  });
  places.resize(std::min(all, kMostLongest));
  std::stable_sort(places.begin(), places.end(),
                   [](const Place& a, const Place& b) { return a.bar->start < b.bar->start; });
  HtmlTable table(
      all > kMostLongest ? fmt::format("the {} longest of {} pieces of work", kMostLongest, all) : "the pieces of work",
      {"from", "length", "stream", "work", "kind", "on the critical path", "the others waited for it"}, 5);
  for (const auto& [lane, bar] : places) {
    table.add({time_text(bar->start), time_text(bar->end - bar->start), label_of(picture.lanes[lane]), bar->name,
               std::string(name_of(bar->category)), is_critical(picture, lane, *bar) ? "yes" : "",
               bar->arrived_last ? "yes" : ""});
  }
  return std::move(table).finish();
}

}  // namespace

std::string css_class_of(Category category) {
  return std::string(name_of(category));
}

std::string stream_label(const StepLane& lane) {
  return fmt::format("{} stream {}", short_device_name(lane.device), lane.stream);
}

std::string gantt_tables(const StepPicture& picture) {
  return folded("As a table", streams_table(picture) + longest_table(picture));
}

std::string gantt(std::string_view title, const StepPicture& picture, Nanoseconds length) {
  const Axis axis = axis_to(static_cast<double>(length), Unit::nanoseconds);
  const double width_of_ns = kPlotWidth / axis.high;
  const double height = (kLaneHeight + kLaneGap) * static_cast<double>(picture.lanes.size());
  Svg svg(kPageWidth, kLanesTop + height + kAxisHeight, title);
  draw_categories(svg);
  draw_marks(svg, axis, kLanesTop, kLanesTop + height);
  double y = kLanesTop;
  for (const StepLane& lane : picture.lanes) {
    draw_lane(svg, lane, y, width_of_ns);
    y += kLaneHeight + kLaneGap;
  }
  for (const CriticalStretch& one : joined(picture.critical_stretches, std::llround(0.5 / width_of_ns))) {
    const double top = kLanesTop + (kLaneHeight + kLaneGap) * one.lane;
    svg.rect(kLabelWidth + static_cast<double>(one.start) * width_of_ns, top + kLaneHeight - 5,
             std::max(0.5, static_cast<double>(one.end - one.start) * width_of_ns), 5, "critical");
  }
  const double end = kLabelWidth + static_cast<double>(picture.length) * width_of_ns;
  svg.line(end, kLanesTop, end, kLanesTop + height, "end");
  return figure("gantt", std::move(svg).finish());
}

}  // namespace tandem::pages
