#include "scenarios/import/layer_expressions.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <system_error>

namespace tandem {
namespace {

constexpr std::size_t kMostLetters = 1 << 16;
constexpr int kMostBrackets = 64;  // inside each other

// Takes the `*n` at the beginning of a text; 1 without one. Returns nothing if no number follows the star.
std::optional<std::size_t> take_times(std::string_view& text) {
  std::size_t times = 1;
  if (!text.starts_with('*')) return times;
  const auto [end, error] = std::from_chars(text.data() + 1, text.data() + text.size(), times);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return times;
}

// Takes a part of a layout up to its end or a closing bracket: letters, `|` between stages, and parts in brackets, each
// with its `*n`. Returns it written out.
std::optional<std::string> take_part(std::string_view& text, int depth) {
  if (depth > kMostBrackets) return std::nullopt;
  std::string all;
  while (!text.empty() && text.front() != ')') {
    std::string item(1, text.front());
    text.remove_prefix(1);
    if (item == "(") {
      const auto inner = take_part(text, depth + 1);
      if (!inner || text.empty()) return std::nullopt;
      text.remove_prefix(1);
      item = *inner;
    } else if (std::string_view("EtmL|, ").find(item.front()) == std::string_view::npos) {
      return std::nullopt;
    }
    const auto times = take_times(text);
    if (!times || *times == 0 || *times > kMostLetters || all.size() + *times * item.size() > kMostLetters)
      return std::nullopt;
    for (std::size_t i = 0; i < *times; ++i) all += item;
  }
  return all;
}

// One list "[0,1]" with the number "*3" behind it.
bool expand_term(std::string_view term, std::size_t most, std::vector<bool>& values) {
  const std::size_t close = term.find(']');
  if (!term.starts_with('[') || close == std::string_view::npos) return false;
  std::vector<bool> items;
  for (const char c : term.substr(1, close - 1)) {
    if (c == ',') continue;
    if (c != '0' && c != '1') return false;
    items.push_back(c == '1');
  }
  std::size_t times = 1;
  std::string_view rest = term.substr(close + 1);
  if (!rest.empty()) {
    if (!rest.starts_with('*') || rest.size() > 6) return false;
    times = 0;
    for (const char c : rest.substr(1)) {
      if (c < '0' || c > '9') return false;
      times = times * 10 + static_cast<std::size_t>(c - '0');
    }
  }
  if (values.size() + items.size() * times > most) return false;
  for (; times > 0; --times) values.insert(values.end(), items.begin(), items.end());
  return true;
}

}  // namespace

std::optional<std::vector<std::int64_t>> stages_of_layout(std::string_view layout, bool with_predictors) {
  const auto all = take_part(layout, 0);
  if (!all || !layout.empty()) return std::nullopt;
  std::vector<std::int64_t> stages{0};
  for (const char letter : *all) {
    if (letter == '|') stages.push_back(0);
    if (letter == 't' || (letter == 'm' && with_predictors)) ++stages.back();
  }
  return stages;
}

bool expand_list(const std::string& text, std::size_t length, std::vector<bool>& values) {
  std::string plain;
  for (const char c : text) {
    if (c != '(' && c != ')' && c != ' ' && c != '"' && c != '\'') plain += c;
  }
  std::string_view rest = plain;
  while (!rest.empty()) {
    const std::size_t plus = std::min(rest.find('+'), rest.size());
    if (!expand_term(rest.substr(0, plus), length, values)) return false;
    rest.remove_prefix(std::min(plus + 1, rest.size()));
  }
  return values.size() == length;
}

}  // namespace tandem
