#include "scenarios/import/traces/op_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "scenarios/import/base/byte_source.h"
#include "topologies/base/strict_yaml.h"

namespace tandem {
namespace {

constexpr std::size_t kMostOps = 50'000'000, kMostLine = 4096;
constexpr int kMostIndex = 1 << 20, kMostStep = std::numeric_limits<int>::max();
constexpr double kMostTime_s = 1e12;  // a start in seconds since 1970 is far below

enum class Column : std::uint8_t { replica, stage, rank, step, kind, start, duration, order, part, part_of_job };
struct NamedColumn {
  std::string_view name;
  bool is_needed;
};
constexpr std::array kColumns = {NamedColumn{"dp_rank", true},  NamedColumn{"stage", true},
                                 NamedColumn{"rank", true},     NamedColumn{"step", true},
                                 NamedColumn{"optype", true},   NamedColumn{"start_ts", true},
                                 NamedColumn{"duration", true}, NamedColumn{"seq_id", true},
                                 NamedColumn{"mc", false},      NamedColumn{"gmc", false}};

class OpTable {
 public:
  explicit OpTable(const InputFile& file) : source_(file) {}

  std::vector<PipelineOp> read() {
    if (!next_line()) fail(0, "is empty: expected a table of ops");
    read_heading();
    while (next_line()) {
      if (!text_.empty()) read_row();
    }
    if (ops_.empty()) fail(0, "has a heading and no ops");
    return std::move(ops_);
  }

 private:
  struct Cell {
    std::string_view text;
    std::size_t begin = 0;  // in the line
  };

  [[noreturn]] void fail(std::size_t begin, const std::string& message) const {
    const FilePlace place{.line = std::max(1, line_), .column = static_cast<int>(begin) + 1};
    throw InputError({problem_at(source_.name(), place, message)});
  }

  // Reads the next line into text_, without its end.
  bool next_line() {
    text_.clear();
    bool has_any = false;
    while (true) {
      if (rest_.empty()) rest_ = source_.next();
      if (rest_.empty()) break;
      if (!has_any) ++line_;
      has_any = true;
      const std::size_t end = rest_.find('\n');
      text_.append(rest_.substr(0, end));
      if (text_.size() > kMostLine) fail(0, "is no row of a table: more than 4096 characters");
      rest_ = end == std::string_view::npos ? std::string_view{} : rest_.substr(end + 1);
      if (end != std::string_view::npos) break;
    }
    if (!text_.empty() && text_.back() == '\r') text_.pop_back();
    return has_any;
  }

  void split() {
    cells_.clear();
    const std::string_view text = text_;
    for (std::size_t begin = 0;;) {
      const std::size_t end = text.find(',', begin);
      cells_.push_back({.text = text.substr(begin, end - begin), .begin = begin});
      if (end == std::string_view::npos) return;
      begin = end + 1;
    }
  }

  void read_heading() {
    split();
    columns_ = cells_.size();
    std::vector<std::string> names;
    for (const Cell& cell : cells_) names.emplace_back(cell.text);
    for (std::size_t i = 0; i < kColumns.size(); ++i) {
      const auto found = std::find(names.begin(), names.end(), kColumns[i].name);
      place_[i] = found == names.end() ? -1 : static_cast<int>(found - names.begin());
      if (found == names.end()) {
        if (kColumns[i].is_needed) refuse_heading(std::string(kColumns[i].name), names);
      } else if (std::find(found + 1, names.end(), kColumns[i].name) != names.end()) {
        fail(0, fmt::format("has two columns '{}'", kColumns[i].name));
      }
    }
  }

  [[noreturn]] void refuse_heading(const std::string& missing, const std::vector<std::string>& names) const {
    const std::string near = nearest_name(missing, names);
    const auto at = std::find(names.begin(), names.end(), near);
    const bool is_slip = !near.empty() && std::none_of(kColumns.begin(), kColumns.end(),
                                                       [&](const NamedColumn& one) { return one.name == near; });
    if (is_slip) {
      fail(cells_[static_cast<std::size_t>(at - names.begin())].begin,
           fmt::format("unknown column '{}'; did you mean '{}'?", shortened(near), missing));
    }
    std::vector<std::string_view> needed;
    for (const NamedColumn& column : kColumns) {
      if (column.is_needed) needed.push_back(column.name);
    }
    fail(0, fmt::format("has no column '{}': expected a table of ops with the columns {}", missing,
                        fmt::join(needed, ", ")));
  }

  const Cell* cell(Column column) const {
    const int place = place_[static_cast<std::size_t>(column)];
    return place < 0 ? nullptr : &cells_[static_cast<std::size_t>(place)];
  }

  [[noreturn]] void refuse_cell(const Cell& cell, Column column, std::string_view expected) const {
    fail(cell.begin, fmt::format("{} is '{}': expected {}", kColumns[static_cast<std::size_t>(column)].name,
                                 shortened(std::string(cell.text)), expected));
  }

  template <typename Number>
  bool parses(const Cell& cell, Number& value) const {
    const char* const end = cell.text.data() + cell.text.size();
    const auto [stopped, error] = std::from_chars(cell.text.data(), end, value);
    return error == std::errc{} && stopped == end;
  }

  int index(Column column, int most = kMostIndex) const {
    const Cell& found = *cell(column);
    int value = -1;
    if (!parses(found, value) || value < 0 || value > most) {
      refuse_cell(found, column, fmt::format("a whole number from 0 to {}", most));
    }
    return value;
  }

  // -1 or an empty cell: it does not apply.
  int index_or_none(Column column) const {
    const Cell* const found = cell(column);
    if (found == nullptr || found->text.empty()) return -1;
    int value = -1;
    if (!parses(*found, value) || value < -1 || value > kMostIndex) {
      refuse_cell(*found, column, fmt::format("a whole number from -1 to {}", kMostIndex));
    }
    return value;
  }

  double time(Column column, double least, std::string_view expected) const {
    const Cell& found = *cell(column);
    double value = 0;
    if (!parses(found, value) || !(value >= least && value <= kMostTime_s)) refuse_cell(found, column, expected);
    return value;
  }

  PipelineOpKind kind() const {
    const Cell& found = *cell(Column::kind);
    if (const auto known = pipeline_op_kind(found.text)) return *known;
    std::vector<std::string> names;
    for (int i = 0; i < kPipelineOpKinds; ++i) names.emplace_back(name_of(static_cast<PipelineOpKind>(i)));
    const std::string near = nearest_name(std::string(found.text), names);
    fail(found.begin, fmt::format("unknown type of op '{}' (known: {}){}", shortened(std::string(found.text)),
                                  fmt::join(names, ", "), near.empty() ? "" : "; did you mean '" + near + "'?"));
  }

  void read_row() {
    split();
    if (cells_.size() != columns_) {
      fail(cells_.size() > columns_ ? cells_[columns_].begin : text_.size(),
           fmt::format("{} cells in a table of {} columns", cells_.size(), columns_));
    }
    if (ops_.size() >= kMostOps) fail(0, "has more than 50 million ops");
    ops_.push_back({.replica = index(Column::replica),
                    .stage = index(Column::stage),
                    .rank = index(Column::rank),
                    .step = index(Column::step, kMostStep),
                    .kind = kind(),
                    .order = index(Column::order),
                    .part = std::max(0, index_or_none(Column::part)),
                    .part_of_job = index_or_none(Column::part_of_job),
                    .start_s = time(Column::start, -kMostTime_s, "a time in seconds"),
                    .duration_s = time(Column::duration, 0, "a duration in seconds, 0 or more"),
                    .place = {.line = line_, .column = 1}});
  }

  ByteSource source_;
  std::string_view rest_;  // of the source's last bytes
  std::string text_;
  int line_ = 0;
  std::size_t columns_ = 0;
  std::vector<Cell> cells_;
  std::array<int, kColumns.size()> place_{};
  std::vector<PipelineOp> ops_;
};

}  // namespace

std::vector<PipelineOp> read_op_table(const InputFile& file) {
  return OpTable(file).read();
}

PipelineSizes read_op_table_sizes(const InputFile& file) {
  const YamlDocument document = YamlDocument::parse(file.text(), file.name());
  Diagnostics diagnostics;
  const YamlReader root(document, diagnostics);
  const auto size = [&](std::string_view key) { return root.optional(key).integer(1, kMostIndex, 1); };
  PipelineSizes sizes{.name = root.optional("trial_name").text()};
  root.optional("run_id").whole_number(0, std::numeric_limits<std::int64_t>::max());
  sizes.sequences = size("dsp_size");
  double ranks = static_cast<double>(sizes.sequences) * size("tp_size");
  for (const auto& [key, known] : {std::pair{"dp_size", &sizes.replicas}, {"pp_size", &sizes.stages}}) {
    if (root.has(key)) *known = size(key);
    ranks *= *known;  // 0: unknown
  }
  if (root.has("vpp_size")) sizes.parts = size("vpp_size");
  const YamlReader world = root.optional("world_size");
  if (world) sizes.ranks = world.integer(1, std::numeric_limits<int>::max(), 1);
  if (world && ranks > 0 && ranks != sizes.ranks) {
    world.error(fmt::format("is {}, and dp_size x pp_size x tp_size x dsp_size is {:.0f}", sizes.ranks, ranks));
  }
  root.finish();
  diagnostics.throw_if_any();
  return sizes;
}

}  // namespace tandem
