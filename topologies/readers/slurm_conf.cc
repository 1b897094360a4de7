#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>

#include "topologies/readers/fabric_description.h"

namespace tandem {
namespace {

constexpr std::size_t kMostNames = 1'000'000;

bool same_word(std::string_view a, std::string_view b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](unsigned char x, unsigned char y) {
           return std::tolower(x) == std::tolower(y);
         });
}

// The numbers of "01-03,7", each with its zeros. False when malformed or too many.
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

// One item without commas outside of brackets: "node[1-4]-ib[0-1]".
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

struct SlurmLine {
  int number = 0;
  std::map<std::string, std::pair<std::string, int>> values{};  // by key in lower case, with the column
};

class SlurmReader {
 public:
  SlurmReader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  FabricDescription read() {
    read_lines();
    for (const SlurmLine& line : lines_) add_switch(line);
    for (const SlurmLine& line : lines_) join(line);
    add_core();
    if (fabric_.hosts.empty() && problems_.empty()) problem(1, 1, "no switch has nodes");
    problems_.throw_if_any();
    check_tree();
    problems_.throw_if_any();
    return std::move(fabric_);
  }

 private:
  void problem(int line, int column, const std::string& message) {
    if (++problem_count_ <= 100) problems_.add({file_, line, column, "", message});
  }

  // Lines may go on after a backslash.
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
      if (equals == std::string::npos) problem(number, column, "expected key=value, found '" + word + "'");
      if (equals != std::string::npos && !line.values.emplace(key, std::pair(word.substr(equals + 1), column)).second) {
        problem(number, column, "a second " + key);
      }
      at = end;
    }
    const bool names = line.values.contains("switchname") || line.values.contains("blockname");
    if (names) lines_.push_back(std::move(line));
    if (!names && !line.values.contains("blocksizes") && problems_.empty()) {
      problem(number, 1, "expected SwitchName= or BlockName=");
    }
  }

  void add_switch(const SlurmLine& line) {
    const auto name = line.values.contains("switchname") ? line.values.at("switchname") : line.values.at("blockname");
    if (name.first.empty()) return problem(line.number, name.second, "a switch without a name");
    if (by_name_.emplace(name.first, fabric_.switches.size()).second) {
      fabric_.switches.push_back(name.first);
      above_.push_back(0);
    } else {
      problem(line.number, name.second, "a second switch " + name.first);
    }
  }

  std::vector<std::string> list(const SlurmLine& line, const std::string& key) {
    const auto found = line.values.find(key);
    if (found == line.values.end()) return {};
    auto names = hosts_of_list(found->second.first);
    if (!names) {
      problem(line.number, found->second.second,
              fmt::format("{}: expected a list such as node[01-16,20], of at most a million names", key));
    }
    return names.value_or(std::vector<std::string>{});
  }

  void join(const SlurmLine& line) {
    if (!problems_.empty()) return;
    const auto& name = line.values.contains("switchname") ? line.values.at("switchname") : line.values.at("blockname");
    const std::size_t own = by_name_.at(name.first);
    for (const std::string& node : list(line, "nodes")) {
      const auto [known, is_new] = hosts_.emplace(node, fabric_.hosts.size());
      if (is_new) fabric_.hosts.push_back(node);
      if (is_new) fabric_.ports.push_back({known->second, "", own, 0, ""});
      if (!is_new) problem(line.number, line.values.at("nodes").second, "node " + node + " is at two switches");
    }
    for (const std::string& below : list(line, "switches")) {
      const auto other = by_name_.find(below);
      const int column = line.values.at("switches").second;
      if (other == by_name_.end()) {
        problem(line.number, column, "no switch " + below + " in this file");
      } else if (other->second == own) {
        problem(line.number, column, "switch " + below + " below itself");
      } else {
        fabric_.cables.push_back({other->second, own, 0, ""});
        ++above_[other->second];
      }
    }
  }

  // Blocks have nothing above them; the job's network joins them.
  void add_core() {
    std::vector<std::size_t> roots;
    for (std::size_t i = 0; i < above_.size(); ++i) {
      if (above_[i] == 0) roots.push_back(i);
    }
    const bool has_blocks = !lines_.empty() && lines_.front().values.contains("blockname");
    if (roots.size() < 2 || !has_blocks) return;
    for (const std::size_t root : roots) fabric_.cables.push_back({root, fabric_.switches.size(), 0, ""});
    fabric_.switches.emplace_back("core");
    above_.push_back(0);
  }

  // Cables whose width is all that comes from below need a beginning.
  void check_tree() {
    std::vector<int> left(fabric_.switches.size(), 0);
    for (const auto& cable : fabric_.cables) ++left[cable.to];
    std::vector<std::size_t> done;
    for (std::size_t i = 0; i < left.size(); ++i) {
      if (left[i] == 0) done.push_back(i);
    }
    std::multimap<std::size_t, std::size_t> up;
    for (const auto& cable : fabric_.cables) up.emplace(cable.from, cable.to);
    for (std::size_t i = 0; i < done.size(); ++i) {
      for (auto [at, end] = up.equal_range(done[i]); at != end; ++at) {
        if (--left[at->second] == 0) done.push_back(at->second);
      }
    }
    if (done.size() < left.size()) problem(1, 1, "switches that are below each other in a circle");
  }

  std::string_view text_;
  const std::string& file_;
  Diagnostics problems_{};
  int problem_count_ = 0;
  std::vector<SlurmLine> lines_{};
  FabricDescription fabric_{};
  std::map<std::string, std::size_t> by_name_{}, hosts_{};
  std::vector<int> above_{};
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
