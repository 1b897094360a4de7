#include "reports/base/text_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

#include "topologies/base/shown.h"
#include "topologies/base/units.h"

namespace tandem {
namespace {

constexpr std::string_view kGap = "  ";

std::string padded(const std::string& cell, int width, bool left) {
  const std::string blanks(static_cast<std::size_t>(std::max(0, width - display_width(cell))), ' ');
  return left ? cell + blanks : blanks + cell;
}

// Bytes of the first code point.
std::size_t character_size(std::string_view text) {
  std::size_t size = 1;
  while (size < text.size() && (text[size] & 0xC0) == 0x80) ++size;
  return size;
}

std::string without_trailing_blanks(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

// One more row takes no more room than the line that would replace it.
ShownRows shown_rows(std::size_t rows, std::string_view option) {
  if (rows <= kMostRows + 1) return {.count = rows, .more = ""};
  return {.count = kMostRows, .more = fmt::format("  ... and {} more ({})\n", rows - kMostRows, option)};
}

int display_width(std::string_view text) {
  return static_cast<int>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string cut_front(std::string_view text, int width) {
  if (display_width(text) <= width) return std::string(text);
  while (display_width(text) > width - 3) text.remove_prefix(character_size(text));
  return "..." + std::string(text);
}

std::string cut_back(std::string_view text, int width) {
  if (display_width(text) <= width) return std::string(text);
  std::size_t size = 0;
  for (int column = 0; column < width - 3; ++column) size += character_size(text.substr(size));
  return std::string(text.substr(0, size)) + "...";
}

void TextTable::add(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = shown(cell);
  rows_.push_back(std::move(cells));
}

std::string TextTable::text() const {
  std::vector<int> widths;
  for (const auto& row : rows_) {
    if (widths.size() < row.size()) widths.resize(row.size());
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i]));
  }
  int total = 0;
  for (const int width : widths) total += width + static_cast<int>(kGap.size());
  total = std::max(0, total - static_cast<int>(kGap.size()));
  std::string text;
  for (const auto& row : rows_) {
    std::string line;
    if (row.empty()) line = std::string(static_cast<std::size_t>(total), '-');
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line += kGap;
      line += padded(row[i], widths[i], static_cast<int>(i) < left_);
    }
    text += without_trailing_blanks(std::move(line)) + "\n";
  }
  return text;
}

std::string time_text(double nanoseconds) {
  if (!std::isfinite(nanoseconds)) return "-";
  if (nanoseconds == 0) return "0";
  return format_quantity(nanoseconds * 1e-9, Dimension::seconds);
}

std::string time_text(Nanoseconds time) {
  return time_text(static_cast<double>(time));
}

std::string signed_time_text(Nanoseconds time) {
  return (time < 0 ? "-" : "+") + time_text(time < 0 ? -time : time);
}

std::pair<std::string, std::string> time_texts(Nanoseconds one, Nanoseconds other) {
  std::pair<std::string, std::string> texts = {time_text(one), time_text(other)};
  if (one != other && texts.first == texts.second) return {fmt::format("{} ns", one), fmt::format("{} ns", other)};
  return texts;
}

std::string count_text(double count) {
  constexpr double kShort = 1e4;
  if (!(std::abs(count) >= kShort) || !std::isfinite(count)) return fmt::format("{:.6g}", count);
  constexpr std::array<std::string_view, 5> kPrefixes = {"k", "M", "G", "T", "P"};
  std::size_t prefix = 0;
  for (count /= 1000; std::abs(count) >= 999.95 && prefix + 1 < kPrefixes.size(); ++prefix) count /= 1000;
  return fmt::format("{:.1f} {}", count, kPrefixes[prefix]);
}

std::string rate_text(double per_second, std::string_view unit) {
  if (!std::isfinite(per_second)) return "-";
  if (per_second < 10000) return fmt::format("{:.4g} {}", per_second, unit);
  if (per_second < 1e7) return fmt::format("{:.1f} k {}", per_second / 1e3, unit);
  return fmt::format("{:.2f} M {}", per_second / 1e6, unit);
}

std::string size_text(std::int64_t bytes) {
  constexpr std::array<std::string_view, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  std::int64_t whole = bytes;
  while (whole != 0 && whole % 1024 == 0 && unit + 1 < kUnits.size()) {
    whole /= 1024;
    ++unit;
  }
  if (whole < 10000 && (unit > 0 || bytes < 1000)) return fmt::format("{} {}", whole, kUnits[unit]);
  return format_quantity(static_cast<double>(bytes), Dimension::bytes);
}

std::string error_text(double relative) {
  if (!std::isfinite(relative)) return "-";
  if (std::abs(relative) < 0.0005) return relative == 0 ? "0 %" : "<0.1 %";
  if (std::abs(relative) >= 10) return fmt::format("{:+.0f} %", relative * 100);
  return fmt::format("{:+.1f} %", relative * 100);
}

std::string percent_text(double ratio) {
  if (!std::isfinite(ratio)) return "-";
  return fmt::format("{:.1f} %", ratio * 100);
}

std::string short_percent(double ratio) {
  return fmt::format("{:.1f}", ratio * 100);
}

std::string share_of(Nanoseconds part, Nanoseconds whole) {
  return whole > 0 ? percent_text(static_cast<double>(part) / static_cast<double>(whole)) : "-";
}

std::string with_blanks(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

std::string interval_text(double lower, double upper) {
  if (!std::isfinite(lower) || !std::isfinite(upper)) return "-";
  return fmt::format("{:+.1f} to {:+.1f} %", lower * 100, upper * 100);
}

std::string csv_cell(const std::string& name) {
  std::string text = shown(name);
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string cell = "\"";
  for (const char c : text) cell += c == '"' ? "\"\"" : std::string(1, c);
  return cell + "\"";
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

std::string wrapped_list(std::string_view label, const std::vector<std::string>& items, std::string_view separator) {
  if (items.empty()) return "";
  std::string text(label);
  int column = display_width(label);
  const std::string indent(static_cast<std::size_t>(column), ' ');
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string item = shown(items[i]) + (i + 1 < items.size() ? std::string(separator) : "");
    const int width = display_width(item);
    if (i > 0 && column + 1 + width > kTextWidth) {
      text += "\n" + indent;
      column = display_width(indent);
    } else if (i > 0) {
      text += " ";
      ++column;
    }
    text += item;
    column += width;
  }
  return text + "\n";
}

}  // namespace tandem
