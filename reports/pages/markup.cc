#include "reports/pages/markup.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reports/base/text_table.h"
#include "topologies/base/shown.h"

namespace tandem::pages {
namespace {

constexpr int kMostCellWidth = 300;
constexpr int kMostTextWidth = 2000;

std::string points_text(const std::vector<std::pair<double, double>>& points) {
  std::string text;
  for (const auto& [x, y] : points)
    text += fmt::format("{}{},{}", text.empty() ? "" : " ", coordinate(x), coordinate(y));
  return text;
}

}  // namespace

std::string escaped(std::string_view text) {
  return xml_text(text);
}

std::string coordinate(double value) {
  const auto tenths = std::llround(value * 10);
  const char* sign = tenths < 0 ? "-" : "";
  const auto magnitude = std::llabs(tenths);
  return magnitude % 10 == 0 ? fmt::format("{}{}", sign, magnitude / 10)
                             : fmt::format("{}{}.{}", sign, magnitude / 10, magnitude % 10);
}

Svg::Svg(double width, double height, std::string_view title) {
  markup_ = fmt::format("<svg viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" role=\"img\">\n<title>{2}</title>\n",
                        coordinate(width), coordinate(height), escaped(title));
}

void Svg::close(std::string_view element, std::string_view tip) {
  markup_ += tip.empty() ? "/>\n" : fmt::format("><title>{}</title></{}>\n", escaped(tip), element);
}

void Svg::rect(double x, double y, double width, double height, std::string_view css_class, std::string_view tip) {
  markup_ += fmt::format(R"(<rect x="{}" y="{}" width="{}" height="{}" class="{}")", coordinate(x), coordinate(y),
                         coordinate(width), coordinate(height), css_class);
  close("rect", tip);
}

void Svg::shade(double x, double y, double width, double height, double share, std::string_view tip) {
  markup_ += fmt::format(R"(<rect x="{}" y="{}" width="{}" height="{}" class="cell" fill-opacity="{:.2f}")",
                         coordinate(x), coordinate(y), coordinate(width), coordinate(height), share);
  close("rect", tip);
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view css_class) {
  markup_ += fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" class=\"{}\"/>\n", coordinate(x1),
                         coordinate(y1), coordinate(x2), coordinate(y2), css_class);
}

void Svg::polyline(const std::vector<std::pair<double, double>>& points, std::string_view css_class) {
  markup_ += fmt::format("<polyline points=\"{}\" class=\"{}\"/>\n", points_text(points), css_class);
}

void Svg::polygon(const std::vector<std::pair<double, double>>& points, std::string_view css_class,
                  std::string_view tip) {
  markup_ += fmt::format(R"(<polygon points="{}" class="{}")", points_text(points), css_class);
  close("polygon", tip);
}

void Svg::circle(double x, double y, double radius, std::string_view css_class, std::string_view tip) {
  markup_ += fmt::format(R"(<circle cx="{}" cy="{}" r="{}" class="{}")", coordinate(x), coordinate(y),
                         coordinate(radius), css_class);
  close("circle", tip);
}

void Svg::text(double x, double y, std::string_view text, std::string_view anchor, std::string_view css_class) {
  const std::string with_class = css_class.empty() ? "" : fmt::format(" class=\"{}\"", css_class);
  markup_ += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"{}\"{}>{}</text>\n", coordinate(x), coordinate(y),
                         anchor, with_class, escaped(text));
}

std::string Svg::finish() && {
  return std::move(markup_) + "</svg>\n";
}

HtmlTable::HtmlTable(std::string_view caption, const std::vector<std::string>& header, std::size_t left) : left_(left) {
  markup_ = fmt::format("<table>\n<caption>{}</caption>\n<thead><tr>", escaped(caption));
  for (std::size_t i = 0; i < header.size(); ++i) {
    markup_ +=
        fmt::format("<th scope=\"col\"{}>{}</th>", i > 0 && i < left ? " class=\"left\"" : "", escaped(header[i]));
  }
  markup_ += "</tr></thead>\n<tbody>\n";
}

void HtmlTable::add(const std::vector<std::string>& cells) {
  if (left_out_ > 0 || markup_.size() > kMostBytes) {
    ++left_out_;
    return;
  }
  markup_ += "<tr>";
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string text = escaped(cut_back(cells[i], kMostCellWidth));
    markup_ += i == 0      ? fmt::format("<th scope=\"row\">{}</th>", text)
               : i < left_ ? fmt::format("<td class=\"left\">{}</td>", text)
                           : fmt::format("<td>{}</td>", text);
  }
  markup_ += "</tr>\n";
}

std::string HtmlTable::finish() && {
  return std::move(markup_) + "</tbody>\n</table>\n" +
         (left_out_ > 0 ? paragraph(fmt::format("... and {} more rows, for which the page has no room", left_out_))
                        : "");
}

std::string paragraph(std::string_view text) {
  return fmt::format("<p>{}</p>\n", escaped(cut_back(text, kMostTextWidth)));
}

std::string bullets(const std::vector<std::string>& texts) {
  if (texts.empty()) return "";
  constexpr std::size_t kMostItems = 50;
  std::string list = "<ul class=\"notes\">\n";
  for (std::size_t i = 0; i < std::min(texts.size(), kMostItems); ++i) {
    list += fmt::format("<li>{}</li>\n", escaped(cut_back(texts[i], kMostTextWidth)));
  }
  list += "</ul>\n";
  if (texts.size() <= kMostItems) return list;
  return list + paragraph(fmt::format("... and {} more, for which the page has no room", texts.size() - kMostItems));
}

std::string section(std::string_view heading, std::string_view content) {
  return fmt::format("<section>\n<h2>{}</h2>\n{}</section>\n", escaped(heading), content);
}

std::string sections_that_fit(const std::vector<std::string>& sections, std::size_t most) {
  constexpr std::string_view kHeadingEnd = "</h2>\n";
  const std::string missing = paragraph("There is no room for this on the page.");
  std::string text;
  for (const std::string& one : sections) {
    if (text.size() + one.size() <= most) {
      text += one;
      continue;
    }
    const std::size_t heading = one.find(kHeadingEnd);
    text +=
        heading == std::string::npos ? missing : one.substr(0, heading + kHeadingEnd.size()) + missing + "</section>\n";
  }
  return text;
}

std::string folded(std::string_view summary, std::string_view content) {
  return fmt::format("<details>\n<summary>{}</summary>\n{}</details>\n", escaped(summary), content);
}

}  // namespace tandem::pages
