#include "reports/pages/plot.h"

#include <fmt/format.h>

namespace tandem::pages {

Axis axis_to(double most, Unit unit) {
  Axis axis{.name = "", .unit = unit};
  axis.hold(0);
  axis.hold(most);
  axis.round();
  return axis;
}

void draw_marks(Svg& svg, const Axis& axis, double top, double bottom) {
  for (const Mark& mark : axis.marks()) {
    const double x = kLabelWidth + axis.share(mark.value) * kPlotWidth;
    svg.line(x, top, x, bottom, "grid");
    svg.text(x, bottom + 16, mark.text, "middle");
  }
}

std::string figure(std::string_view css_class, std::string_view picture, std::string_view after) {
  return fmt::format("<figure class=\"{}\">\n<div class=\"scrolls\" tabindex=\"0\">\n{}</div>\n{}</figure>\n",
                     css_class, picture, after);
}

}  // namespace tandem::pages
