#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "reports/base/text_table.h"
#include "reports/pages/charts.h"
#include "reports/pages/markup.h"
#include "reports/pages/plot.h"

namespace tandem::pages {
namespace {

constexpr double kLeft = 110, kTop = 30, kWidth = kPageWidth - kLeft - 30, kHeight = 280, kBottom = 48;
constexpr double kAxisRowHeight = 18;  // of a row below the axis
constexpr int kStyles = 6;             // colors, dashes and shapes of series

class Drawing {
 public:
  Drawing(std::string_view title, const XyChart& chart)
      : chart_(chart),
        svg_(kPageWidth, kTop + kHeight + kBottom + kAxisRowHeight * static_cast<double>(chart.rows.size()), title) {}

  std::string draw() && {
    if (chart_.shaded_to > chart_.shaded_from) draw_shade();
    draw_axes();
    double legend = std::max(kLeft, 24 + kCharacter * static_cast<double>(chart_.y.name.size()));
    for (std::size_t i = 0; i < chart_.series.size(); ++i) {
      draw_series(chart_.series[i], static_cast<int>(i) % kStyles);
      const std::string style = fmt::format("s{}", i % kStyles);
      svg_.rect(legend, 8, 14, 10, "patch " + style);
      svg_.text(legend + 19, 17, chart_.series[i].name);
      legend += 40 + kCharacter * static_cast<double>(chart_.series[i].name.size());
    }
    draw_labels();
    for (std::size_t i = 0; i < chart_.rows.size(); ++i) {
      draw_row(chart_.rows[i], kTop + kHeight + kBottom + kAxisRowHeight * static_cast<double>(i));
    }
    return std::move(svg_).finish();
  }

 private:
  double x_of(double value) const { return kLeft + std::clamp(chart_.x.share(value), 0.0, 1.0) * kWidth; }
  double y_of(double value) const { return kTop + (1 - std::clamp(chart_.y.share(value), 0.0, 1.0)) * kHeight; }

  void draw_shade() {
    const double from = x_of(chart_.shaded_from);
    svg_.rect(from, kTop, x_of(chart_.shaded_to) - from, kHeight, "band", chart_.shaded_name);
    svg_.text(from + 4, kTop + 12, chart_.shaded_name, "start", "small");
  }

  void draw_labels() {
    struct Box {
      double left, right, y;
    };
    std::vector<Box> drawn;
    for (const ChartLabel& label : chart_.labels) {
      const double width = kCharacter * static_cast<double>(label.text.size());
      const double left = std::min(x_of(label.x) + 5, kLeft + kWidth - width);
      const double y = std::max(y_of(label.y) - 7, kTop + 10);
      const bool is_free = std::none_of(drawn.begin(), drawn.end(), [&](const Box& other) {
        return left < other.right && other.left < left + width && std::abs(y - other.y) < 12;
      });
      if (!is_free) continue;
      svg_.text(left, y, label.text, "start", "small");
      drawn.push_back({left, left + width, y});
    }
  }

  void draw_row(const AxisRow& row, double y) {
    constexpr int kMostLetters = 16;
    constexpr double kLonely = 80;  // the width of a cell without neighbours
    svg_.text(kLeft - 6, y + 11, cut_front(row.name, kMostLetters), "end", "small");
    for (std::size_t i = 0; i < row.cells.size(); ++i) {
      const AxisRow::Cell& cell = row.cells[i];
      const double x = x_of(cell.x);
      const double to_left = i > 0 ? (x - x_of(row.cells[i - 1].x)) / 2 : 0;
      const double to_right = i + 1 < row.cells.size() ? (x_of(row.cells[i + 1].x) - x) / 2 : 0;
      const double lonely = row.cells.size() == 1 ? kLonely / 2 : 0;
      const double left = std::max(kLeft, x - std::max({to_left, i == 0 ? to_right : 0, lonely}));
      const double right =
          std::min(kLeft + kWidth, x + std::max({to_right, i + 1 == row.cells.size() ? to_left : 0, lonely}));
      svg_.rect(left, y, right - left, kAxisRowHeight - 4, cell.css_class + " soft",
                fmt::format("{}, {}: {}", row.name, value_text(cell.x, chart_.x.unit), cell.text));
      if (kCharacter * static_cast<double>(cell.text.size()) > right - left) continue;
      svg_.text((left + right) / 2, y + 11, cell.text, "middle", "small");
    }
  }

  void draw_axes() {
    for (const Mark& mark : chart_.x.marks()) {
      const double x = x_of(mark.value);
      svg_.line(x, kTop, x, kTop + kHeight, "grid");
      svg_.text(x, kTop + kHeight + 16, mark.text, "middle");
    }
    for (const Mark& mark : chart_.y.marks()) {
      const double y = y_of(mark.value);
      svg_.line(kLeft, y, kLeft + kWidth, y, "grid");
      svg_.text(kLeft - 6, y + 4, mark.text, "end");
    }
    svg_.text(kLeft + kWidth / 2, kTop + kHeight + 38, chart_.x.name, "middle");
    svg_.text(4, 17, chart_.y.name);
  }

  // Points may coincide, so those that are drawn first are larger and remain visible behind the others.
  double dot_radius(const Series& series) const {
    const Series* const end = chart_.series.data() + chart_.series.size();
    const auto later =
        std::count_if(&series + 1, end, [](const Series& one) { return one.mark == Series::Mark::dots; });
    return 4 + std::min(static_cast<double>(later), 3.0);
  }

  void draw_series(const Series& series, int style) {
    std::vector<std::pair<double, double>> line;
    for (std::size_t i = 0; i < series.points.size(); ++i) {
      const auto& [px, py] = series.points[i];
      if (!chart_.x.can_show(px) || !chart_.y.can_show(py)) continue;
      const double x = x_of(px), y = y_of(py);
      if (series.mark == Series::Mark::stairs && !line.empty()) line.emplace_back(x, line.back().second);
      line.emplace_back(x, y);
      if (series.mark == Series::Mark::dashes) continue;
      const bool hollow = i < series.is_hollow.size() && series.is_hollow[i];
      std::string tip =
          fmt::format("{}: {}, {}", series.name, value_text(px, chart_.x.unit), value_text(py, chart_.y.unit));
      if (i < series.remarks.size() && !series.remarks[i].empty()) tip += "; " + series.remarks[i];
      svg_.circle(x, y, series.mark == Series::Mark::dots ? dot_radius(series) : 2.5,
                  fmt::format("dot s{}{}", style, hollow ? " hollow" : ""), tip);
    }
    const char* css_class = series.mark == Series::Mark::dashes ? "dashes" : "curve";
    if (series.mark != Series::Mark::dots) svg_.polyline(line, fmt::format("{} s{}", css_class, style));
  }

  const XyChart& chart_;
  Svg svg_;
};

std::string number_text(double value) {
  return std::isfinite(value) ? fmt::format("{:.8g}", value) : "null";
}

// Returns the points as the script reads them: rows of x and, for each series, a value or null.
std::string data_of(const XyChart& chart) {
  std::vector<std::pair<double, std::string>> rows;
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    for (const auto& [x, y] : chart.series[i].points) {
      if (!chart.x.can_show(x) || !chart.y.can_show(y)) continue;
      std::vector<std::string> row(chart.series.size(), "null");
      row[i] = number_text(y);
      rows.emplace_back(x, fmt::format("[{},{}]", number_text(x), fmt::join(row, ",")));
    }
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> texts, marks;
  for (const auto& [x, text] : rows) texts.push_back(text);
  for (const Series& series : chart.series) marks.push_back(std::to_string(static_cast<int>(series.mark)));
  const auto axis = [](const Axis& one) {
    return fmt::format(R"({{"log":{},"unit":{}}})", one.is_logarithmic, static_cast<int>(one.unit));
  };
  return fmt::format(R"({{"x":{},"y":{},"marks":[{}],"rows":[{}]}})", axis(chart.x), axis(chart.y),
                     fmt::join(marks, ","), fmt::join(texts, ","));
}

std::string names_of(const XyChart& chart) {
  std::string items;
  for (const Series& series : chart.series) items += fmt::format("<li>{}</li>", escaped(series.name));
  return fmt::format("<ul class=\"names\" hidden>{}</ul>\n", items);
}

// What a chart shows at most; of more points every second, third ... of each series is drawn, and the last one.
constexpr std::size_t kMostPoints = 1500;
constexpr std::size_t kMostSeries = 24;

template <typename Value>
void keep_every(std::vector<Value>& values, std::size_t step) {
  std::vector<Value> kept;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i % step == 0 || i + 1 == values.size()) kept.push_back(values[i]);
  }
  values = std::move(kept);
}

// Returns a sentence about what is not drawn; "" if all is.
std::string make_small(XyChart& chart) {
  constexpr int kMostNameWidth = 60;
  for (Series& series : chart.series) series.name = cut_back(series.name, kMostNameWidth);
  std::string text;
  if (chart.series.size() > kMostSeries) {
    text = fmt::format("{} more series are not drawn. ", chart.series.size() - kMostSeries);
    chart.series.resize(kMostSeries);
  }
  std::size_t points = 0;
  for (const Series& series : chart.series) points += series.points.size();
  if (points > kMostPoints) {
    const std::size_t step = (points + kMostPoints - 1) / kMostPoints;
    for (Series& series : chart.series) {
      keep_every(series.points, step);
      if (!series.is_hollow.empty()) keep_every(series.is_hollow, step);
      if (!series.remarks.empty()) keep_every(series.remarks, step);
    }
    text += fmt::format("One of {} points is drawn.", step);
  }
  return text.empty() ? "" : fmt::format("<figcaption>{}</figcaption>\n", escaped(text));
}

}  // namespace

std::string xy_chart(std::string_view title, XyChart chart) {
  const std::string left_out = make_small(chart);
  for (const Series& series : chart.series) {
    for (const auto& [x, y] : series.points) {
      if (!chart.x.can_show(x) || !chart.y.can_show(y)) continue;
      chart.x.hold(x);
      chart.y.hold(y);
    }
  }
  if (!chart.y.is_logarithmic && chart.y.low > 0 && chart.y.low < chart.y.high / 2) chart.y.hold(0);
  chart.x.round();
  chart.y.round();
  for (Series& series : chart.series) {
    if (series.mark != Series::Mark::dashes || series.points.size() != 1) continue;
    series.points = {{chart.x.low, series.points.front().second}, {chart.x.high, series.points.front().second}};
  }
  return figure(
      "xy", Drawing(title, chart).draw(),
      fmt::format("{}{}<script type=\"application/json\">{}</script>\n", left_out, names_of(chart), data_of(chart)));
}

}  // namespace tandem::pages
