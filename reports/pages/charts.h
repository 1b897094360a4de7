// The pictures of a page, each as one <figure> with inline SVG: complete without a script and in black and white.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reports/pages/axis.h"
#include "reports/run/run_details.h"

namespace tandem::pages {

inline constexpr double kPageWidth = 960;

// A part of a bar; `css_class` gives it its color, and its pattern in print.
struct BarPart {
  std::string name;
  std::string css_class;
  double value = 0;
};
// Returns a part of a step, in its color.
BarPart part_of_step(const StepPart& part, double value);

struct Bar {
  std::string label;
  std::vector<BarPart> parts;
  bool is_thin = false;  // belongs to the bar above it
};
// Draws bars from left to right, all on one scale, with a legend of the parts that occur.
std::string stacked_bars(std::string_view title, const std::vector<Bar>& bars, Unit unit);

// Draws the lanes of a step, one below the other. `length` is the time that the whole width shows; equal lengths align
// two charts.
std::string gantt(std::string_view title, const StepPicture& picture, Nanoseconds length);
std::string stream_label(const StepLane& lane);  // "CPU:1 stream 0"
// Returns the same as tables, which readers can unfold: the work of each stream, and the longest pieces of it.
std::string gantt_tables(const StepPicture& picture);

// Rows of cells, which are darker for greater values.
struct HeatMap {
  std::vector<std::string> rows;
  std::vector<std::string> columns;
  std::vector<std::vector<double>> values;  // by row; NaN: an empty cell
  Unit unit = Unit::number;
  std::string column_name;  // "step"
};
std::string heat_map(std::string_view title, const HeatMap& map);

// Draws the nodes that the links join, in rows by their kind, devices below and the fabric above. A link is wider if
// more of its bandwidth was used, and the most used one is marked. Two directions are one line, with the greater use.
std::string link_map(std::string_view title, const LinkPicture& picture);

// Points over two axes. With a script the picture can be zoomed.
struct Series {
  std::string name;
  std::vector<std::pair<double, double>> points;  // in ascending order of x where it is a line
  std::vector<bool> is_hollow{};                  // of each point; empty: none is
  std::vector<std::string> remarks{};             // on each point, shown where the pointer rests; empty: none
  enum class Mark : std::uint8_t {
    line,
    stairs,
    dots,
    dashes
  } mark = Mark::line;  // dashes with one point go all across
};
struct ChartLabel {
  double x = 0, y = 0;
  std::string text;
};
// A row below the axis: what holds around each x, as far as half the way to its neighbours.
struct AxisRow {
  struct Cell {
    double x = 0;
    std::string text, css_class;
  };
  std::string name;
  std::vector<Cell> cells;  // in ascending order of x
};
struct XyChart {
  Axis x, y;  // their ranges are found from the points
  std::vector<Series> series;
  // A shaded band over a range of x; none where it is empty.
  double shaded_from = 0, shaded_to = 0;
  std::string shaded_name;
  std::vector<ChartLabel> labels{};  // beside points; those that would cover another are left out
  std::vector<AxisRow> rows{};
};
std::string xy_chart(std::string_view title, XyChart chart);

// A term between two totals, and what it adds or takes.
struct WaterfallTerm {
  std::string name;
  double change = 0;
};
// Draws the way from one total to another. `noise` is drawn as a band around the first total. Where the changes are
// small beside the totals, shows only their range.
std::string waterfall(std::string_view title, std::string_view first, double from, std::string_view last,
                      const std::vector<WaterfallTerm>& terms, double noise, Unit unit);

// Returns the class of a category of work, which is also the name of its color.
std::string css_class_of(Category category);

}  // namespace tandem::pages
