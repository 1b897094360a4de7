// Stacked bars, waterfalls and heat maps.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reports/pages/charts.h"
#include "reports/pages/markup.h"
#include "reports/pages/plot.h"
#include "reports/text_table.h"

namespace tandem::pages {
namespace {

constexpr double kBarHeight = 22, kThinHeight = 9, kGap = 6;

// Keeps the end of a name, which distinguishes devices.
std::string shortened(const std::string& name) {
  constexpr int kMost = 30;
  return cut_front(name, kMost);
}

double total_of(const Bar& bar) {
  double total = 0;
  for (const BarPart& part : bar.parts) total += part.value;
  return total;
}

constexpr double kLegendRow = 18;

// Each part that occurs, once, with the place of its patch of color and name. Entries that do not fit in one row
// continue in the next.
struct LegendEntry {
  const BarPart* part = nullptr;
  double x = 0, y = 0;
};
std::vector<LegendEntry> legend_of(const std::vector<Bar>& bars) {
  std::vector<LegendEntry> entries;
  double x = kLabelWidth, y = 4;
  for (const Bar& bar : bars) {
    for (const BarPart& part : bar.parts) {
      const bool is_named = std::any_of(entries.begin(), entries.end(),
                                        [&](const LegendEntry& entry) { return entry.part->name == part.name; });
      if (part.value <= 0 || is_named) continue;
      const double width = 34 + kCharacter * static_cast<double>(part.name.size());
      if (x > kLabelWidth && x + width > kPageWidth) {
        x = kLabelWidth;
        y += kLegendRow;
      }
      entries.push_back({&part, x, y});
      x += width;
    }
  }
  return entries;
}

}  // namespace

std::string stacked_bars(std::string_view title, const std::vector<Bar>& bars, Unit unit) {
  double height = 0, most = 0;
  for (const Bar& bar : bars) {
    most = std::max(most, total_of(bar));
    height += (bar.is_thin ? kThinHeight : kBarHeight) + kGap;
  }
  const Axis axis = axis_to(most, unit);
  const std::vector<LegendEntry> legend = legend_of(bars);
  const double top = 20 + (legend.empty() ? 4 : legend.back().y);
  Svg svg(kPageWidth, top + height + kAxisHeight, title);
  for (const LegendEntry& entry : legend) {
    svg.rect(entry.x, entry.y, 14, 12, entry.part->css_class);
    svg.text(entry.x + 19, entry.y + 11, entry.part->name);
  }
  draw_marks(svg, axis, top, top + height);
  double y = top;
  for (const Bar& bar : bars) {
    const double thickness = bar.is_thin ? kThinHeight : kBarHeight;
    svg.text(kLabelWidth - 8, y + thickness / 2 + 4, shortened(bar.label), "end", bar.is_thin ? "small" : "");
    double from = 0;
    for (const BarPart& part : bar.parts) {
      if (part.value <= 0) continue;
      const double x = kLabelWidth + axis.share(from) * kPlotWidth;
      from += part.value;
      const double width = kLabelWidth + axis.share(from) * kPlotWidth - x;
      svg.rect(x, y, width, thickness, part.css_class,
               fmt::format("{}: {} {}", bar.label, part.name, value_text(part.value, unit)));
    }
    y += thickness + kGap;
  }
  return figure("bars", std::move(svg).finish());
}

std::string waterfall(std::string_view title, std::string_view first, double from, std::string_view last,
                      const std::vector<WaterfallTerm>& terms, double noise, Unit unit) {
  double reached = from, most = from * (1 + noise);
  for (const WaterfallTerm& term : terms) most = std::max(most, reached += term.change);
  const Axis axis = axis_to(most, unit);
  const double top = 8;
  const double height = (kBarHeight + kGap) * static_cast<double>(terms.size() + 2);
  Svg svg(kPageWidth, top + height + kAxisHeight, title);
  draw_marks(svg, axis, top, top + height);
  const auto x_of = [&](double value) { return kLabelWidth + axis.share(value) * kPlotWidth; };
  if (noise > 0) {
    const double x = x_of(from * (1 - noise));
    svg.rect(x, top, x_of(from * (1 + noise)) - x, height, "band",
             fmt::format("noise of the measurement: {}", percent_text(noise)));
  }
  double y = top;
  const auto draw = [&](std::string_view name, double begin, double end, std::string_view css_class,
                        const std::string& text) {
    svg.text(kLabelWidth - 8, y + kBarHeight / 2 + 4, name, "end");
    const double x = x_of(std::min(begin, end));
    const double width = std::max(1.0, x_of(std::max(begin, end)) - x);
    svg.rect(x, y, width, kBarHeight, css_class, fmt::format("{}: {}", name, text));
    const bool fits = x + width + 90 < kPageWidth;
    svg.text(fits ? x + width + 5 : x - 5, y + kBarHeight / 2 + 4, text, fits ? "start" : "end");
    y += kBarHeight + kGap;
  };
  draw(first, 0, from, "total", value_text(from, unit));
  reached = from;
  for (const WaterfallTerm& term : terms) {
    const double before = reached;
    reached += term.change;
    draw(term.name, before, reached, term.change > 0 ? "more" : "less",
         (term.change > 0 ? "+" : "-") + value_text(std::abs(term.change), unit));
  }
  draw(last, 0, reached, "total", value_text(reached, unit));
  return figure("waterfall", std::move(svg).finish());
}

std::string heat_map(std::string_view title, const HeatMap& map) {
  constexpr double kCellHeight = 16;
  const double columns = static_cast<double>(std::max<std::size_t>(1, map.columns.size()));
  const double cell_width = std::min(48.0, kPlotWidth / columns);
  double most = 0;
  for (const auto& row : map.values) {
    for (const double value : row) most = std::isfinite(value) ? std::max(most, value) : most;
  }
  const double height = kCellHeight * static_cast<double>(map.rows.size());
  Svg svg(kPageWidth, height + 48, title);
  for (std::size_t row = 0; row < map.rows.size(); ++row) {
    const double y = 4 + kCellHeight * static_cast<double>(row);
    svg.text(kLabelWidth - 8, y + 12, shortened(map.rows[row]), "end", "small");
    for (std::size_t column = 0; column < map.columns.size(); ++column) {
      const double value = map.values[row][column];
      if (!std::isfinite(value)) continue;
      svg.shade(kLabelWidth + cell_width * static_cast<double>(column), y, cell_width, kCellHeight,
                most > 0 ? value / most : 0,
                fmt::format("{}, {} {}: {}", shortened(map.rows[row]), map.column_name, map.columns[column],
                            value_text(value, map.unit)));
    }
  }
  const std::size_t every = static_cast<std::size_t>(std::ceil(40 / cell_width));
  for (std::size_t column = 0; column < map.columns.size(); column += every) {
    svg.text(kLabelWidth + cell_width * (static_cast<double>(column) + 0.5), height + 20, map.columns[column], "middle",
             "small");
  }
  svg.text(kLabelWidth, height + 40,
           fmt::format("{}; the darkest cell is {}", map.column_name, value_text(most, map.unit)), "start", "small");
  return figure("heat", std::move(svg).finish());
}

}  // namespace tandem::pages
