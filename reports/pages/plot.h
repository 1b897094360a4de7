// The common parts of pictures with rows: names on the left, a horizontal axis below, and the element around them.
#pragma once

#include <string>
#include <string_view>

#include "reports/pages/axis.h"
#include "reports/pages/charts.h"
#include "reports/pages/markup.h"

namespace tandem::pages {

inline constexpr double kLabelWidth = 200;
inline constexpr double kPlotWidth = kPageWidth - kLabelWidth - 40;
inline constexpr double kAxisHeight = 30;  // below the rows
inline constexpr double kCharacter = 6.6;  // about the width of a character in a picture

// Returns a horizontal axis from 0 that holds `most`.
Axis axis_to(double most, Unit unit);
// Draws the marks of a horizontal axis, from `top` to `bottom`, and their texts.
void draw_marks(Svg& svg, const Axis& axis, double top, double bottom);
// Returns a figure whose picture can be scrolled where the window is narrow. `after` follows the picture.
std::string figure(std::string_view css_class, std::string_view picture, std::string_view after = "");

}  // namespace tandem::pages
