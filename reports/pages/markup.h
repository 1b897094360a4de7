// Writes HTML and SVG as text. Equal calls give equal bytes.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tandem::pages {

// Returns the text with &, <, > and both quotes as references, and without the control characters that HTML forbids.
std::string escaped(std::string_view text);

// Returns a coordinate with at most one decimal: "12", "12.5".
std::string coordinate(double value);

// A picture, built element by element. Coordinates are pixels from the upper left corner. Appearance comes from the
// class; `tip` is shown where the pointer rests.
class Svg {
 public:
  // `title` names the picture to those who cannot see it.
  Svg(double width, double height, std::string_view title);

  void rect(double x, double y, double width, double height, std::string_view css_class, std::string_view tip = "");
  void line(double x1, double y1, double x2, double y2, std::string_view css_class);
  void polyline(const std::vector<std::pair<double, double>>& points, std::string_view css_class);
  void polygon(const std::vector<std::pair<double, double>>& points, std::string_view css_class,
               std::string_view tip = "");
  void circle(double x, double y, double radius, std::string_view css_class, std::string_view tip = "");
  // `anchor` is "start", "middle" or "end".
  void text(double x, double y, std::string_view text, std::string_view anchor = "start",
            std::string_view css_class = "");
  // Draws a rectangle filled with a share of the strongest color: 0 none, 1 all of it.
  void shade(double x, double y, double width, double height, double share, std::string_view tip);

  std::string finish() &&;

 private:
  void close(std::string_view element, std::string_view tip);

  std::string markup_;
};

// A table of text; `left` columns are aligned left. Only the first rows of a long table are written, and a line below
// it says how many others there are. Long texts of cells are cut.
class HtmlTable {
 public:
  HtmlTable(std::string_view caption, const std::vector<std::string>& header, std::size_t left = 1);
  void add(const std::vector<std::string>& cells);
  std::string finish() &&;

  static constexpr std::size_t kMostBytes = 200'000;

 private:
  std::string markup_;
  std::size_t left_;
  std::size_t left_out_ = 0;
};

std::string paragraph(std::string_view text);
// Returns a list with a bullet for each of the first texts; "" without texts.
std::string bullets(const std::vector<std::string>& texts);
// Returns a section of a page, with a heading that names it.
std::string section(std::string_view heading, std::string_view content);
// Returns the sections in their order, at most `most` bytes of them. Where there is no room for one, its heading and a
// sentence are in its place.
std::string sections_that_fit(const std::vector<std::string>& sections, std::size_t most);
// Returns content that readers can unfold, such as the table that a picture shows.
std::string folded(std::string_view summary, std::string_view content);

}  // namespace tandem::pages
