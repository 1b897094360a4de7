// Stacked bars, waterfalls and heat maps.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reports/base/text_table.h"
#include "reports/pages/charts.h"
#include "reports/pages/markup.h"
#include "reports/pages/plot.h"

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

// "+1.500 ms"
std::string signed_text(double value, Unit unit) {
  return value == 0 ? "0" : (value > 0 ? "+" : "-") + value_text(std::abs(value), unit);
}

// The horizontal axis of a waterfall, which leaves room for a value to the right of each bar. From 0, or, where the
// changes are small beside the totals, only the range of the changes: then its marks are differences from the first
// total, and the bars of the totals are cut.
class WaterfallScale {
 public:
  WaterfallScale(double from, const std::vector<WaterfallTerm>& terms, double noise, Unit unit) {
    constexpr double kLeastShare = 0.5;  // of the axis, that the changes take in one from 0
    constexpr double kMargin = 0.15;     // of the range, left of the changes
    double reached = from, low = from * (1 - noise), high = from * (1 + noise);
    for (const WaterfallTerm& term : terms) {
      reached += term.change;
      low = std::min(low, reached);
      high = std::max(high, reached);
    }
    is_cut_ = high > low && high - low < kLeastShare * high;
    from_ = from;
    zero_ = is_cut_ ? from : 0;
    axis_ = Axis{.name = "", .unit = unit};
    axis_.hold(is_cut_ ? low - from - kMargin * (high - low) : 0);
    axis_.hold(high - zero_);
    axis_.round();
  }

  bool is_cut() const { return is_cut_; }
  double start() const { return zero_ + axis_.low; }
  double x_of(double value) const { return kLabelWidth + axis_.share(value - zero_) * kWidth; }

  void draw_marks(Svg& svg, double top, double bottom, std::string_view first) const {
    for (const Mark& mark : axis_.marks()) {
      const double x = kLabelWidth + axis_.share(mark.value) * kWidth;
      svg.line(x, top, x, bottom, "grid");
      const bool has_sign = is_cut_ && mark.value != 0 && !mark.text.starts_with('-');
      svg.text(x, bottom + 16, (has_sign ? "+" : "") + mark.text, "middle");
    }
    if (!is_cut_) return;
    svg.text(
        kLabelWidth, bottom + 34,
        fmt::format("the difference from {} ({}); bars of the totals are cut", first, value_text(from_, axis_.unit)),
        "start", "small");
  }

 private:
  static constexpr double kWidth = kPlotWidth - 90;
  Axis axis_;
  double from_ = 0, zero_ = 0;
  bool is_cut_ = false;
};

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
  const WaterfallScale scale(from, terms, noise, unit);
  const double top = 8;
  const double height = (kBarHeight + kGap) * static_cast<double>(terms.size() + 2);
  Svg svg(kPageWidth, top + height + kAxisHeight + (scale.is_cut() ? 16 : 0), title);
  scale.draw_marks(svg, top, top + height, first);
  if (noise > 0) {
    const double x = scale.x_of(from * (1 - noise));
    svg.rect(x, top, scale.x_of(from * (1 + noise)) - x, height, "band",
             fmt::format("noise of the measurement: {}", percent_text(noise)));
  }
  double y = top;
  const auto draw = [&](std::string_view name, double begin, double end, std::string_view css_class,
                        const std::string& text) {
    svg.text(kLabelWidth - 8, y + kBarHeight / 2 + 4, name, "end");
    const double x = scale.x_of(std::min(begin, end));
    const double width = std::max(1.0, scale.x_of(std::max(begin, end)) - x);
    svg.rect(x, y, width, kBarHeight, css_class, fmt::format("{}: {}", name, text));
    svg.text(x + width + 5, y + kBarHeight / 2 + 4, text, "start");
    y += kBarHeight + kGap;
  };
  const auto draw_total = [&](std::string_view name, double value) {
    const double middle = kLabelWidth + 12;
    draw(name, scale.start(), value, "total", value_text(value, unit));
    if (!scale.is_cut()) return;
    for (const double x : {middle, middle + 5}) svg.line(x, y - kBarHeight - kGap, x - 4, y - kGap, "grid");
  };
  draw_total(first, from);
  double reached = from;
  for (const WaterfallTerm& term : terms) {
    const double before = reached;
    reached += term.change;
    draw(term.name, before, reached, term.change > 0 ? "more" : "less", signed_text(term.change, unit));
  }
  draw_total(last, reached);
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
