#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>

#include "topologies/readers/fabric_description.h"
#include "topologies/readers/fabrics/slurm_tree.h"

namespace tandem {
namespace {

constexpr std::size_t kMostNames = 1'000'000;

bool same_word(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](unsigned char x, unsigned char y) {
           return std::tolower(x) == std::tolower(y);
         });
}

// Adds the numbers of "01-03,7", with their leading zeros. Returns false if the text is malformed or has too many.
bool expand_ranges(std::string_view text, std::vector<std::string>& numbers) {
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view one = text.substr(0, comma);
    text = comma == std::string_view::npos ? "" : text.substr(comma + 1);
    const std::size_t dash = one.find('-');
    const std::string_view first = one.substr(0, dash);
    const std::string_view last = dash == std::string_view::npos ? first : one.substr(dash + 1);
    unsigned long from = 0, to = 0;
    const auto a = std::from_chars(first.data(), first.data() + first.size(), from);
    const auto b = std::from_chars(last.data(), last.data() + last.size(), to);
    if (a.ec != std::errc{} || b.ec != std::errc{} || a.ptr != first.data() + first.size() ||
        b.ptr != last.data() + last.size() || to < from || to - from >= kMostNames) {
      return false;
    }
    for (unsigned long i = from; i <= to; ++i) numbers.push_back(fmt::format("{:0{}}", i, first.size()));
    if (numbers.size() > kMostNames) return false;
  }
  return !numbers.empty();
}

// Expands one item without commas outside of brackets: "node[1-4]-ib[0-1]".
bool expand_item(std::string_view item, std::vector<std::string>& names) {
  std::vector<std::string> found{""};
  while (!item.empty()) {
    const std::size_t open = item.find('[');
    const std::string_view plain = item.substr(0, open);
    for (std::string& name : found) name += plain;
    if (open == std::string_view::npos) break;
    const std::size_t close = item.find(']', open);
    std::vector<std::string> numbers;
    if (close == std::string_view::npos || !expand_ranges(item.substr(open + 1, close - open - 1), numbers))
      return false;
    if (found.size() * numbers.size() + names.size() > kMostNames) return false;
    std::vector<std::string> longer;
    for (const std::string& name : found) {
      for (const std::string& number : numbers) longer.push_back(name + number);
    }
    found.swap(longer);
    item.remove_prefix(close + 1);
  }
  names.insert(names.end(), found.begin(), found.end());
  return names.size() <= kMostNames;
}

bool is_known_key(std::string_view key) {
  return key == "switchname" || key == "switches" || key == "nodes" || key == "linkspeed" || key == "blockname" ||
         key == "blocksizes";
}

class SlurmReader {
 public:
  SlurmReader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  FabricDescription read() {
    read_lines();
    FabricDescription fabric = fabric_of(lines_, file_, problems_);
    if (has_block_sizes_) fabric.notes.emplace_back("BlockSizes has no effect here: each block is one NVLink domain");
    if (has_link_speed_) fabric.notes.emplace_back("LinkSpeed has no effect here, as in Slurm");
    return fabric;
  }

 private:
  void problem(int line, int column, const std::string& message) {
    if (++problem_count_ <= 100) problems_.add({file_, line, column, "", message});
  }

  // A backslash at the end continues a line.
  void read_lines() {
    int number = 0, first = 0;
    std::string joined;
    for (std::size_t begin = 0; begin < text_.size();) {
      const std::size_t end = std::min(text_.find('\n', begin), text_.size());
      std::string_view line = text_.substr(begin, end - begin);
      begin = end + 1;
      ++number;
      line = line.substr(0, line.find('#'));
      while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back())) != 0) line.remove_suffix(1);
      if (joined.empty()) first = number;
      const bool goes_on = line.ends_with('\\');
      if (goes_on) line.remove_suffix(1);
      joined += line;
      if (goes_on && begin < text_.size()) continue;
      if (joined.find_first_not_of(" \t") != std::string::npos) read_line(joined, first);
      joined.clear();
    }
  }

  void read_line(const std::string& text, int number) {
    SlurmLine line{number, {}};
    for (std::size_t at = text.find_first_not_of(" \t"); at != std::string::npos && at < text.size();
         at = text.find_first_not_of(" \t", at)) {
      const std::size_t end = std::min(text.find_first_of(" \t", at), text.size());
      const std::string word = text.substr(at, end - at);
      const std::size_t equals = word.find('=');
      std::string key = word.substr(0, equals);
      std::transform(key.begin(), key.end(), key.begin(), [](unsigned char c) { return std::tolower(c); });
      const int column = static_cast<int>(at) + 1;
      if (equals == std::string::npos) {
        problem(number, column, "expected key=value, found '" + shortened(word) + "'");
      } else if (!is_known_key(key)) {
        problem(number, column,
                "unknown key '" + shortened(word.substr(0, equals)) + "', expected SwitchName, Switches, " +
                    "Nodes, LinkSpeed, BlockName or BlockSizes");
      }
      if (equals != std::string::npos && !line.values.emplace(key, std::pair(word.substr(equals + 1), column)).second) {
        problem(number, column, "a second " + key);
      }
      at = end;
    }
    has_block_sizes_ |= line.values.contains("blocksizes");
    has_link_speed_ |= line.values.contains("linkspeed");
    const bool names = line.values.contains("switchname") || line.values.contains("blockname");
    if (names) {
      lines_.push_back(std::move(line));
    } else if (!line.values.contains("blocksizes") && problems_.empty()) {
      problem(number, 1, "expected SwitchName= or BlockName=");
    }
  }

  std::string_view text_;
  const std::string& file_;
  Diagnostics problems_{};
  int problem_count_ = 0;
  bool has_block_sizes_ = false, has_link_speed_ = false;
  std::vector<SlurmLine> lines_{};
};

}  // namespace

std::optional<std::vector<std::string>> hosts_of_list(std::string_view list) {
  std::vector<std::string> names;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && list[i] == '[') ++depth;
    if (i < list.size() && list[i] == ']') --depth;
    if (depth < 0 || depth > 1) return std::nullopt;
    if (i < list.size() && (list[i] != ',' || depth > 0)) continue;
    const std::string_view item = list.substr(begin, i - begin);
    begin = i + 1;
    if (item.empty() || !expand_item(item, names)) return std::nullopt;
  }
  return depth == 0 && !names.empty() ? std::optional(names) : std::nullopt;
}

bool is_slurm_conf(std::string_view text) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t start = line.find_first_not_of(" \t\r");
    if (start == std::string_view::npos || line[start] == '#') continue;
    const std::string_view word = line.substr(start, line.find('=') - start);
    return line.find('=') != std::string_view::npos &&
           (same_word(word, "SwitchName") || same_word(word, "BlockName") || same_word(word, "BlockSizes"));
  }
  return false;
}

FabricDescription parse_slurm_conf(std::string_view text, const std::string& file) {
  return SlurmReader(text, file).read();
}

}  // namespace tandem
