// Plain text for people: aligned columns, wrapped lines, quantities with the fitting unit.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/timeline.h"

namespace tandem {

inline constexpr int kTextWidth = 96;

// Rows of cells, each column as wide as its widest cell. The first column is aligned left, the others right.
class TextTable {
 public:
  // `left`: how many of the leading columns are aligned left.
  explicit TextTable(int left = 1) : left_(left) {}
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  // A line of dashes below the row before.
  void add_rule() { rows_.emplace_back(); }
  // A line that takes part in no column.
  void add_heading(std::string text) { rows_.push_back({std::move(text)}); }
  std::string text() const;

 private:
  int left_;
  std::vector<std::vector<std::string>> rows_;
};

// Columns a terminal needs: code points, which is exact for the scripts scenario names are written in most.
int display_width(std::string_view text);

// "1.234 ms"; "0" for no time at all.
std::string time_text(Nanoseconds time);
std::string time_text(double nanoseconds);
// "104.2 k examples/s"
std::string rate_text(double per_second, std::string_view unit);
// "16 KiB", "25 MiB", "1000 B": sizes in powers of 1024 where they are whole ones, else four digits in powers of 1000.
std::string size_text(std::int64_t bytes);
// "+3.2 %"; "<0.1 %" without a sign where it rounds to nothing.
std::string error_text(double relative);
// "12.3 %"
std::string percent_text(double ratio);

std::vector<std::string> words_of(const std::string& text);

// `label`, then the items separated by `separator` and a blank, wrapped at kTextWidth and indented by its width.
std::string wrapped_list(std::string_view label, const std::vector<std::string>& items, std::string_view separator);

}  // namespace tandem
