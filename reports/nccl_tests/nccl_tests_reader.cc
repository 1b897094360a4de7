#include "reports/nccl_tests/nccl_tests_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <utility>

#include "reports/nccl_tests/nccl_tests_json.h"
#include "reports/nccl_tests/nccl_tests_line.h"
#include "reports/nccl_tests/nccl_tests_ranks.h"
#include "reports/nccl_tests/nccl_tests_rows.h"

namespace tandem {
namespace nccl_tests {
namespace {

// The sweep that a run announces, which shows whether a table is complete.
struct Announced {
  std::int64_t most_bytes = 0;
  int devices_per_process = 0;
};

class TextReader {
 public:
  TextReader(std::string file, const CollectiveTable& stated) : file_(std::move(file)), stated_(stated) {}

  std::vector<CollectiveTable> read(std::string_view text) {
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      std::string_view line = text.substr(begin, end - begin);
      if (line.ends_with('\r')) line.remove_suffix(1);
      ++line_;
      begin = end + 1;
      if (is_plain(line)) {
        read_line(line);
      } else {
        read_line(plain_lines_.emplace_back(plain_line(line)));
      }
    }
    end_table(false);
    if (tables_.empty() && problems_.empty()) {
      problems_.add({file_, 1, 1, "",
                     "holds no table of nccl-tests; its rows begin with size, count and type, and the "
                     "row above them names the columns"});
    }
    problems_.throw_if_any();
    return std::move(tables_);
  }

 private:
  // Whether nothing can be in a line that plain_line() changes.
  static bool is_plain(std::string_view line) { return line.find_first_of("\x1b>|\xc2") == line.npos; }

  void read_line(std::string_view line) {
    const std::vector<Word> words = split(line);
    if (words.empty()) return;
    if (is_ellipsis(words)) return leave_out();
    if (continues_heading(words)) return;
    if (line.find("Test NCCL failure") != line.npos || line.find("Test CUDA failure") != line.npos) {
      return problem(words.front(), fmt::format("the run failed: '{}'", line.substr(0, 120)));
    }
    if (line.find("Out of bounds values") != line.npos || line.find("Avg bus bandwidth") != line.npos) {
      return end_table(true);
    }
    if (is_heading(words)) return begin_table(words);
    read_announcement(line, words);
    read_row(words);
  }

  // Reads the lines above a table: its program, its ranks, NCCL's version.
  void read_announcement(std::string_view line, const std::vector<Word>& words) {
    for (const Word& word : words) {
      if (!word.text.ends_with("_perf")) continue;
      if (const std::string operation = operation_of_test(word.text); !operation.empty()) operation_ = operation;
    }
    if (const auto most = line.find("maxBytes "); most != line.npos) {
      begin_run();
      announced_.most_bytes = number_after<std::int64_t>(words, "maxBytes").value_or(0);
      read_devices_per_process(words);
    }
    if (line.find("NCCL version ") != line.npos) read_version(words);
    const bool is_of_rank = line.find("Rank") != line.npos && line.find("Pid") != line.npos;
    if (!is_of_rank) return;
    if (is_small(words, "Rank") && is_small(words, "device")) return ranks_.add(words);
    ranks_.add_ellipsis(line_);  // so that the number of ranks is no second problem
  }

  void read_devices_per_process(const std::vector<Word>& words) {
    if (!is_small(words, "nGpus") || !is_small(words, "nThread")) return;
    const std::int64_t gpus = number_after<std::int64_t>(words, "nGpus").value_or(0);
    const std::int64_t threads = number_after<std::int64_t>(words, "nThread").value_or(1);
    announced_.devices_per_process = static_cast<int>(std::min(gpus * threads, kMostRanks));
    if (gpus * threads < kMostRanks) return;
    problem(*word_after(words, "nGpus"),
            fmt::format("a process with {} devices, more than {}", gpus * threads, kMostRanks - 1));
  }

  // Refuses a whole number after a word that is negative or too large to be that of a rank or device.
  bool is_small(const std::vector<Word>& words, std::string_view name) {
    const Word* const stated = word_after(words, name);
    if (stated == nullptr) return true;
    const std::string_view digits = stated->text.substr(stated->text.starts_with('-') ? 1 : 0);
    if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos) return true;
    const auto number = number_in<std::int64_t>(stated->text);
    if (number && *number >= 0 && *number < kMostRanks) return true;
    problem(*stated,
            fmt::format("{}: must be from 0 to {}, found {}", name, kMostRanks - 1, stated->text.substr(0, 40)));
    return false;
  }

  // Rows or ranks are left out here.
  void leave_out() {
    if (!builder_) return ranks_.add_ellipsis(line_);
    end_cut_row();
    if (rows_ellipsis_ == 0) rows_ellipsis_ = line_;
    ends_open_ = true;
  }

  // The second line of a heading that a narrow window has divided.
  bool continues_heading(const std::vector<Word>& words) {
    if (!builder_ || !builder_->empty() || !is_part_of_heading(words)) return false;
    heading_.insert(heading_.end(), words.begin(), words.end());
    columns_ = columns_of(heading_);
    return true;
  }

  void read_version(const std::vector<Word>& words) {
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
      if (words[i].text == "version") version_ = std::string(words[i + 1].text.substr(0, words[i + 1].text.find('+')));
    }
  }

  void begin_run() {
    end_table(false);
    ranks_.clear();
    announced_ = {};
  }

  void begin_table(const std::vector<Word>& heading) {
    end_table(false);
    heading_ = heading;
    columns_ = columns_of(heading);
    const bool whole = columns_.groups >= 1 && columns_.figures >= 3;
    if (!whole) return problem(heading.front(), "the heading lacks time, algbw or busbw");
    start();
  }

  void start() {
    builder_.emplace(file_, problems_);
    CollectiveTable& table = builder_->table();
    table.line = line_;
    table.operation = operation_;
    table.devices = ranks_.devices();
    table.nodes = ranks_.nodes();
    table.nccl_version = version_;
    table.devices_per_process = std::max(announced_.devices_per_process, ranks_.devices_per_process());
    builder_->set_doubtful_devices(ranks_.has_gaps());
    rows_ellipsis_ = 0;
    ends_open_ = false;
  }

  std::string left_out_text() const {
    const std::string ranks = ranks_.ellipsis_line() > 0 ? fmt::format("ranks (line {})", ranks_.ellipsis_line())
                              : ranks_.has_gaps()        ? "ranks"
                                                         : "";
    const std::string rows = rows_ellipsis_ > 0 ? fmt::format("rows (line {})", rows_ellipsis_) : "";
    return ranks + (ranks.empty() || rows.empty() ? "" : " and ") + rows;
  }

  // `complete`: the lines that follow a table were found.
  void end_table(bool complete) {
    if (!builder_) return;
    end_cut_row();
    complete |= ends_open_;
    builder_->table().left_out = left_out_text();
    const bool has_rows = !builder_->empty();
    const std::int64_t last = has_rows && !builder_->table().rows.empty() ? builder_->table().rows.back().bytes : 0;
    if (!complete && announced_.most_bytes > 0 && last * 2 <= announced_.most_bytes && has_rows) {
      builder_->problem({line_, 1}, fmt::format("the table is cut: it ends at {} B, and the run went up to {} B; the "
                                                "last line of a whole one is '# Avg bus bandwidth'",
                                                last, announced_.most_bytes));
    }
    if (has_rows) {
      tables_.push_back(builder_->finished(stated_));
    } else if (!complete) {
      builder_->problem({builder_->table().line, 1}, "a heading without rows below it: the log is cut");
    } else {
      builder_->problem({builder_->table().line, 1}, "a table without rows");
    }
    builder_.reset();
  }

  // Returns the index of the word at which a row begins: size and count, then the type. A launcher may have put a
  // prefix before it. A row with an unknown type, or with a number that is not one, is recognised because it has as
  // many words as the heading has columns.
  std::optional<std::size_t> beginning_of_row(const std::vector<Word>& words) const {
    for (std::size_t i = 0; i + 2 < words.size(); ++i) {
      const bool has_size = number_in<std::int64_t>(after_colon(words[i].text)).has_value();
      const bool has_count = number_in<std::int64_t>(words[i + 1].text).has_value();
      const bool has_type = dtype_of_nccl(words[i + 2].text).has_value();
      if (has_size && has_count && has_type) return i;
      const bool is_whole = builder_ && columns_.is_heading && words.size() - i == columns_.words();
      if (is_whole && static_cast<int>(has_size) + static_cast<int>(has_count) + static_cast<int>(has_type) == 2)
        return i;
    }
    return {};
  }

  void read_row(const std::vector<Word>& words) {
    const auto begin = beginning_of_row(words);
    if (!begin && continues_row(words)) return;
    end_cut_row();
    if (!begin) {
      if (builder_ && columns_.is_heading) check_cut_row(words);
      return;
    }
    std::vector<Word> row(words.begin() + static_cast<std::ptrdiff_t>(*begin), words.end());
    row.front().text = after_colon(row.front().text);
    if (!builder_) {
      if (row.size() != 9 && row.size() != 13) return;  // a line of something else
      columns_ = {};
      columns_.groups = row.size() == 9 ? 1 : 2;
      start();
    }
    if (columns_.timestamps && row.size() == columns_.words() + 2) row.resize(columns_.words());
    if (row.size() < columns_.words()) {
      cut_row_ = std::move(row);
      cut_line_ = line_;
      return;
    }
    if (row.size() > columns_.words()) return refuse_row(row, "other output is mixed into it");
    read_whole_row(row);
  }

  void refuse_row(const std::vector<Word>& row, std::string_view why) {
    problem(row.front(),
            fmt::format("a row of {} columns below a heading of {}: {}", row.size(), columns_.words(), why));
  }

  // Adds a line of figures to the row that ended too early in the line before, as in a narrow window.
  bool continues_row(const std::vector<Word>& words) {
    const bool fits = !cut_row_.empty() && line_ == cut_line_ + 1 && cut_row_.size() + words.size() <= columns_.words();
    const bool are_figures = std::all_of(words.begin(), words.end(), [](const Word& word) {
      return number_in<double>(word.text).has_value() || word.text == "N/A";
    });
    if (!fits || !are_figures) return false;
    cut_row_.insert(cut_row_.end(), words.begin(), words.end());
    cut_line_ = line_;
    if (cut_row_.size() < columns_.words()) return true;
    const std::vector<Word> row = std::move(cut_row_);
    cut_row_.clear();
    read_whole_row(row);
    return true;
  }

  void end_cut_row() {
    if (cut_row_.empty()) return;
    const int now = std::exchange(line_, cut_line_);
    refuse_row(cut_row_, "it is cut");
    line_ = now;
    cut_row_.clear();
  }

  // Refuses a line that begins like a row but ends before the type.
  void check_cut_row(const std::vector<Word>& words) {
    const bool only_numbers = std::all_of(words.begin(), words.end(), [](const Word& word) {
      return number_in<std::int64_t>(after_colon(word.text)).has_value();
    });
    if (only_numbers && words.size() <= 2) problem(words.front(), "a row that is cut after its first columns");
  }

  void read_whole_row(const std::vector<Word>& words) {
    std::size_t next = 0;
    CollectiveRow row;
    row.line = line_;
    const Place place{line_, words.front().column};
    row.bytes = count(words[next++], "a size in bytes");
    row.count = count(words[next++], "a number of elements");
    const std::string dtype = element_type(words[next++]);
    const std::string redop = columns_.redop ? std::string(words[next++].text) : "";
    const int root = columns_.root ? whole(words[next++], "a root") : -1;
    std::vector<std::optional<Figures>> groups;
    for (int group = 0; group < columns_.groups; ++group) {
      groups.push_back(figures(words, next, row));
      next += static_cast<std::size_t>(columns_.figures);
    }
    if (is_bad_row_) {
      is_bad_row_ = false;
      return;
    }
    if (builder_->begins_again(row.bytes, dtype, redop, root)) {
      end_table(true);
      start();
    }
    ends_open_ = false;
    CollectiveTable& table = builder_->table();
    table.dtype = dtype;
    table.redop = redop;
    table.root = root;
    builder_->add(std::move(row), groups.front(), groups.size() > 1 ? groups[1] : std::nullopt, place);
  }

  std::int64_t count(const Word& word, std::string_view what) {
    const auto value = number_in<std::int64_t>(word.text);
    if (value && *value >= 0 && *value <= kMostBytes) return *value;
    bad_word(word, value && *value > 0 ? fmt::format("{} up to {}", what, kMostBytes) : std::string(what));
    return 0;
  }

  std::string element_type(const Word& word) {
    if (!dtype_of_nccl(word.text)) bad_word(word, "an element type of nccl-tests, such as float or half");
    return std::string(word.text);
  }

  int whole(const Word& word, std::string_view what) {
    const auto value = number_in<int>(word.text);
    if (!value) bad_word(word, what);
    return value.value_or(-1);
  }

  using FigureProblem = std::string (*)(double value, std::string_view written);

  double figure(const Word& word, std::string_view what, FigureProblem problem_of = nullptr) {
    const auto value = number_in<double>(word.text);
    if (!value || !std::isfinite(*value) || *value < 0) {
      bad_word(word, what);
      return 0;
    }
    const std::string wrong = problem_of == nullptr ? "" : problem_of(*value, word.text.substr(0, 40));
    if (!wrong.empty()) problem(word, fmt::format("{} {}", what, wrong));
    is_bad_row_ = is_bad_row_ || !wrong.empty();
    return *value;
  }

  // Returns nothing if a group was not measured, which is N/A in all of its columns.
  std::optional<Figures> figures(const std::vector<Word>& words, std::size_t first, CollectiveRow& row) {
    if (std::all_of(words.begin() + static_cast<std::ptrdiff_t>(first),
                    words.begin() + static_cast<std::ptrdiff_t>(first) + 3,
                    [](const Word& word) { return word.text == "N/A"; })) {
      return {};
    }
    const Figures read{.time_us = figure(words[first], "a time in us", time_problem),
                       .algbw = figure(words[first + 1], "a bandwidth in GB/s", bandwidth_problem),
                       .busbw = figure(words[first + 2], "a bandwidth in GB/s", bandwidth_problem)};
    if (columns_.figures < 4) return read;
    const Word& wrong = words[first + 3];
    if (wrong.text != "N/A") {
      const double elements = figure(wrong, "a number of wrong elements or N/A");
      if (columns_.counts_wrong) row.wrong = std::max(row.wrong.value_or(0), wrong_elements(elements));
    }
    return read;
  }

  void bad_word(const Word& word, std::string_view what) {
    is_bad_row_ = true;
    problem(word, fmt::format("expected {}, found '{}'", what, word.text.substr(0, 40)));
  }

  void problem(const Word& at, std::string message) {
    if (builder_) return builder_->problem({line_, at.column}, std::move(message));
    problems_.add({file_, line_, at.column, "", std::move(message)});
  }

  const std::string file_;
  const CollectiveTable& stated_;
  Diagnostics problems_;
  std::vector<CollectiveTable> tables_;
  std::optional<TableBuilder> builder_;
  Columns columns_;
  Announced announced_;
  int line_ = 0;
  bool is_bad_row_ = false;
  std::string operation_;
  std::string version_;
  RankLines ranks_;
  std::vector<Word> heading_;
  std::vector<Word> cut_row_;  // one that may go on in the next line
  int cut_line_ = 0;
  int rows_ellipsis_ = 0;               // the first line that marks rows left out of the table; 0: none
  bool ends_open_ = false;              // the last line read of the table is such a one
  std::list<std::string> plain_lines_;  // to which words refer
};

}  // namespace
}  // namespace nccl_tests

std::vector<CollectiveTable> read_nccl_tests(std::string_view text, const std::string& file,
                                             const CollectiveTable& stated) {
  if (const auto zero = text.find('\0'); zero != text.npos) {
    throw InputError({problem_at(file, place_in(text, zero), "is not text")});
  }
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first != text.npos && (text[first] == '{' || text.substr(first, 2) == "[{"))
    return nccl_tests::read_json(text, file, stated);
  return nccl_tests::TextReader(file, stated).read(text);
}

}  // namespace tandem
