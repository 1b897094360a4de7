#include "scenarios/faults/fault_trace.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "scenarios/import/base/input_file.h"
#include "topologies/base/error.h"
#include "topologies/base/strict_yaml.h"
#include "topologies/base/units.h"

namespace tandem {
namespace {

constexpr std::array<std::string_view, 4> kComes{"add", "back", "up", "join"};
constexpr std::array<std::string_view, 5> kGoes{"remove", "fail", "down", "lost", "preempt"};

bool is_event(std::string_view word) {
  return std::ranges::count(kComes, word) + std::ranges::count(kGoes, word) > 0;
}

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  for (;;) {
    const std::size_t comma = line.find(',');
    std::string_view cell = line.substr(0, comma);
    while (cell.starts_with(' ')) cell.remove_prefix(1);
    while (cell.ends_with(' ') || cell.ends_with('\r')) cell.remove_suffix(1);
    cells.push_back(cell);
    if (comma == std::string_view::npos) return cells;
    line.remove_prefix(comma + 1);
  }
}

struct Columns {
  std::size_t time = 0, node = 1, event = 2;
  double unit_s = 1;
};

class TraceReader {
 public:
  TraceReader(const std::filesystem::path& file, std::optional<double> unit_s)
      : file_(file.string()), unit_s_(unit_s) {}

  std::vector<TraceEvent> read(std::string_view text) {
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      read_line(text.substr(0, end));
      if (end == std::string_view::npos) break;
      text.remove_prefix(end + 1);
    }
    if (events_.empty()) fail("no event: expected lines such as 95,node7,remove");
    return std::move(events_);
  }

 private:
  [[noreturn]] void fail(std::string message) const {
    throw InputError(
        {Diagnostic{.file = file_, .line = line_, .column = 1, .path = "", .message = std::move(message)}});
  }

  void read_line(std::string_view line) {
    ++line_;
    const std::vector<std::string_view> cells = cells_of(line);
    if (cells.size() == 1 && (cells[0].empty() || cells[0].starts_with('#'))) return;
    if (cells.size() < 3) fail(fmt::format("expected time, node and event, found '{}'", line));
    if (!has_columns_) {
      has_columns_ = true;
      if (read_header(cells)) return;
      if (is_event(cells[1]) && !is_event(cells[2])) std::swap(columns_.node, columns_.event);
    }
    add(cells);
  }

  bool read_header(const std::vector<std::string_view>& cells) {
    const auto place = [&](std::string_view name) {
      return static_cast<std::size_t>(std::ranges::find(cells, name) - cells.begin());
    };
    if (parse_quantity(cells[0], Dimension::seconds)) return false;
    const std::size_t none = cells.size();
    columns_.time = std::min({place("time"), place("time_s"), place("time_ms")});
    columns_.node = std::min({place("node"), place("what"), place("worker")});
    columns_.event = place("event");
    if (columns_.time == none || columns_.node == none || columns_.event == none) {
      fail("expected the columns time_s (or time_ms), node and event");
    }
    columns_.unit_s = cells[columns_.time] == "time_ms" ? 1e-3 : 1;
    return true;
  }

  void add(const std::vector<std::string_view>& cells) {
    if (cells.size() <= std::max({columns_.time, columns_.node, columns_.event})) fail("a column is missing");
    const auto time = parse_quantity(cells[columns_.time], Dimension::seconds);
    if (!time || *time < 0) fail(fmt::format("expected a time of 0 or more, found '{}'", cells[columns_.time]));
    const std::string_view event = cells[columns_.event];
    if (!is_event(event)) {
      fail(fmt::format("unknown event '{}' (one of {}, {})", event, fmt::join(kComes, ", "), fmt::join(kGoes, ", ")));
    }
    const double date_s = *time * unit_s_.value_or(columns_.unit_s);
    if (!events_.empty() && date_s < events_.back().date_s) {
      fail(fmt::format("{} comes before the event above it", cells[columns_.time]));
    }
    events_.push_back(
        {.date_s = date_s, .comes = std::ranges::count(kComes, event) > 0, .node = std::string(cells[columns_.node])});
  }

  const std::string file_;
  const std::optional<double> unit_s_;
  Columns columns_;
  bool has_columns_ = false;
  int line_ = 0;
  std::vector<TraceEvent> events_;
};

}  // namespace

std::vector<TraceEvent> read_fault_trace(const std::filesystem::path& file, std::optional<double> unit_s) {
  return TraceReader(file, unit_s).read(InputFile(file).text());
}

}  // namespace tandem
