#include "strategies/cluster/slurm_lists.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "strategies/base/errors.h"
#include "strategies/cluster/text.h"

namespace tandem {
namespace {

// Accepts only digits, because these lists have no signs.
int count_in(std::string_view text, std::string_view list, const char* kind) {
  const bool is_digits = std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); });
  const auto number = is_digits ? whole_number(text) : std::nullopt;
  if (!number) throw ValueError(fmt::format("invalid {} '{}': '{}' must be a number", kind, list, text));
  return *number;
}

[[noreturn]] void refuse_hosts(std::string_view hosts, const char* why) {
  throw ValueError(fmt::format("invalid host list '{}': {}", hosts, why));
}

// Splits at commas outside of brackets.
std::vector<std::string_view> split_hosts(std::string_view hosts) {
  std::vector<std::string_view> parts;
  bool in_brackets = false;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (hosts[i] == '[' && in_brackets) refuse_hosts(hosts, "a range within a range");
    if (hosts[i] == '[') in_brackets = true;
    if (hosts[i] == ']') in_brackets = false;
    if (hosts[i] != ',' || in_brackets) continue;
    if (i == begin) refuse_hosts(hosts, "a host is missing before ','");
    parts.push_back(hosts.substr(begin, i - begin));
    begin = i + 1;
  }
  if (in_brackets) refuse_hosts(hosts, "']' is missing");
  if (begin < hosts.size()) parts.push_back(hosts.substr(begin));
  return parts;
}

void add_range(std::vector<std::string>& names, std::string_view prefix, std::string_view range,
               std::string_view hosts) {
  const std::vector<std::string_view> ends = split_text(range, '-');
  if (ends.size() > 2) refuse_hosts(hosts, "a range has two ends");
  const int last = count_in(ends.back(), hosts, "host list");
  for (int i = count_in(ends.front(), hosts, "host list"); i <= last; ++i) {
    names.push_back(fmt::format("{}{:0{}}", prefix, i, ends.front().size()));
  }
}

}  // namespace

std::vector<std::string> expand_hostlist(std::string_view hosts) {
  std::vector<std::string> names;
  for (const std::string_view part : split_hosts(hosts)) {
    const std::size_t open = part.find('[');
    const std::size_t close = part.find(']');
    if (open == std::string_view::npos && close == std::string_view::npos) {
      names.emplace_back(part);
      continue;
    }
    if (open == std::string_view::npos || close != part.size() - 1) refuse_hosts(hosts, "a range must end its host");
    const std::string_view ranges = part.substr(open + 1, close - open - 1);
    for (const std::string_view range : split_text(ranges, ',')) add_range(names, part.substr(0, open), range, hosts);
  }
  return names;
}

std::vector<int> expand_tasks_per_node(std::string_view tasks) {
  constexpr const char* kKind = "tasks-per-node list";
  std::vector<int> counts;
  for (const std::string_view part : split_text(tasks, ',')) {
    const std::size_t open = part.find("(x");
    const bool repeats = open != std::string_view::npos;
    if (repeats && part.back() != ')') throw ValueError(fmt::format("invalid {} '{}': ')' is missing", kKind, tasks));
    const int times = repeats ? count_in(part.substr(open + 2, part.size() - open - 3), tasks, kKind) : 1;
    counts.insert(counts.end(), static_cast<std::size_t>(times), count_in(part.substr(0, open), tasks, kKind));
  }
  return counts;
}

}  // namespace tandem
