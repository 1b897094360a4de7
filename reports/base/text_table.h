// Formats plain text for people: aligned columns, wrapped lines, quantities with a fitting unit.
//
// Threads: any; a TextTable, one at a time.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/timeline.h"

namespace tandem {

inline constexpr int kTextWidth = 96;

// Rows of cells, each column as wide as its widest cell. The first columns are aligned left, the others right.
class TextTable {
 public:
  // Aligns the first `left` columns left.
  explicit TextTable(int left = 1) : left_(left) {}
  // Cells are shown in one line, whatever names of files are in them.
  void add(std::vector<std::string> cells);
  // Adds a line of dashes below the previous row.
  void add_rule() { rows_.emplace_back(); }
  std::string text() const;

 private:
  int left_;
  std::vector<std::vector<std::string>> rows_;
};

// How much of a long table is shown.
struct ShownRows {
  std::size_t count = 0;  // the first rows
  std::string more;       // the line below them: "  ... and 41 more (--all)\n"; "" if all rows are shown
};
inline constexpr std::size_t kMostRows = 12;
// `option` is the command's option that shows all rows.
ShownRows shown_rows(std::size_t rows, std::string_view option);

// Returns the number of terminal columns, counted as code points: exact for most scripts.
int display_width(std::string_view text);

// Cut texts of more than `width` columns at the front or at the back, and put "..." there.
std::string cut_front(std::string_view text, int width);
std::string cut_back(std::string_view text, int width);

// Return "1.234 ms"; "0" for 0.
std::string time_text(Nanoseconds time);
std::string time_text(double nanoseconds);
std::string signed_time_text(Nanoseconds time);  // "+1.234 ms", "-20.00 us"
// Returns the texts of two times that are compared: in nanoseconds if the usual texts of different times are equal.
std::pair<std::string, std::string> time_texts(Nanoseconds one, Nanoseconds other);
// Returns "465.9 M": numbers from 10,000 on with a prefix of powers of 1000, others with six digits.
std::string count_text(double count);
// "104.2 k examples/s"
std::string rate_text(double per_second, std::string_view unit);
// Returns "16 KiB", "25 MiB", "1000 B": whole multiples of a power of 1024 as such, other sizes with four digits in
// powers of 1000.
std::string size_text(std::int64_t bytes);
// Returns "+3.2 %"; "<0.1 %" without a sign for what rounds to 0.
std::string error_text(double relative);
// "12.3 %"
std::string percent_text(double ratio);
// "12.3", for tables in percent
std::string short_percent(double ratio);

// Returns the share "12.3 %", or "-" if the whole is 0.
std::string share_of(Nanoseconds part, Nanoseconds whole);

// Returns "exposed communication" for the name "exposed_communication" in documents.
std::string with_blanks(std::string name);
// "+3.2 to +7.0 %"
std::string interval_text(double lower, double upper);

// Returns a name in one line, with quotes where CSV needs them (RFC 4180).
std::string csv_cell(const std::string& name);

std::vector<std::string> words_of(const std::string& text);

// Returns `label`, then the items separated by `separator` and a blank, wrapped at kTextWidth and indented by the width
// of the label.
std::string wrapped_list(std::string_view label, const std::vector<std::string>& items, std::string_view separator);

}  // namespace tandem
