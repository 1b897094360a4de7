#include "scenarios/model/model_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace tandem {
namespace {

constexpr std::int64_t kMostValue = std::int64_t{1} << 40;

bool is_name_start(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}

bool is_name_part(char c) {
  return is_name_start(c) || std::isdigit(static_cast<unsigned char>(c)) != 0;
}

bool is_name(const std::string& text) {
  return !text.empty() && is_name_start(text.front()) && std::all_of(text.begin(), text.end(), is_name_part);
}

struct UnknownName {
  std::string name;
};

// A sum of products of names and whole numbers, from left to right. Throws std::invalid_argument, UnknownName.
class Expression {
 public:
  // Adds the names that it reads to `used`.
  Expression(std::string_view text, const std::map<std::string, std::int64_t>& values, std::set<std::string>& used)
      : rest_(text), values_(values), used_(used) {}

  std::int64_t value() {
    std::int64_t sum = product();
    for (char c = next(); c != '\0'; c = next()) {
      if (c != '+' && c != '-') throw std::invalid_argument("expected one of + - * /");
      rest_.remove_prefix(1);
      const std::int64_t term = product();
      sum = checked(c == '+' ? static_cast<double>(sum) + static_cast<double>(term)
                             : static_cast<double>(sum) - static_cast<double>(term));
    }
    return sum;
  }

 private:
  char next() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
    return rest_.empty() ? '\0' : rest_.front();
  }

  static std::int64_t checked(double value) {
    if (value > static_cast<double>(kMostValue) || value < -static_cast<double>(kMostValue)) {
      throw std::invalid_argument("is too large");
    }
    return static_cast<std::int64_t>(value);
  }

  std::int64_t product() {
    std::int64_t value = factor();
    for (char c = next(); c == '*' || c == '/'; c = next()) {
      rest_.remove_prefix(1);
      const std::int64_t by = factor();
      if (c == '/' && (by == 0 || value % by != 0)) {
        throw std::invalid_argument(fmt::format("{} is no multiple of {}", value, by));
      }
      value = c == '*' ? checked(static_cast<double>(value) * static_cast<double>(by)) : value / by;
    }
    return value;
  }

  std::int64_t factor() {
    const char first = next();
    std::size_t length = 0;
    while (length < rest_.size() && is_name_part(rest_[length])) ++length;
    const std::string word(rest_.substr(0, length));
    rest_.remove_prefix(length);
    if (is_name(word)) {
      const auto found = values_.find(word);
      if (found == values_.end()) throw UnknownName{word};
      used_.insert(word);
      return found->second;
    }
    std::int64_t number = 0;
    const auto result = std::from_chars(word.data(), word.data() + word.size(), number);
    if (word.empty() || result.ec != std::errc{} || result.ptr != word.data() + word.size() || number > kMostValue) {
      throw std::invalid_argument(first == '\0' ? "ends too early" : "expected a whole number or one of `sizes`");
    }
    return number;
  }

  std::string_view rest_;
  const std::map<std::string, std::int64_t>& values_;
  std::set<std::string>& used_;
};

template <typename Map>
std::vector<std::string> names_in(const Map& values) {
  std::vector<std::string> names;
  for (const auto& [name, value] : values) names.push_back(name);
  return names;
}

bool is_number(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '+' || c == '.';
  });
}

}  // namespace

ModelSizes::ModelSizes(const YamlReader& map, const std::map<std::string, std::int64_t>& chosen) {
  if (map) {
    for (const auto& [name, value] : map.entries()) {
      if (!is_name(name)) value.error(fmt::format("'{}' is no name: letters, digits and _, and no digit first", name));
      values_[name] = value.whole_number(1, kMostValue, 1);
    }
  }
  for (const auto& [name, value] : chosen) {
    const auto found = values_.find(name);
    if (found == values_.end()) {
      map.unknown_word("size", name, names_in(values_));
      continue;
    }
    is_as_in_file_ = is_as_in_file_ && found->second == value;
    found->second = value;
  }
}

std::int64_t ModelSizes::read(const YamlReader& value, std::int64_t least, std::int64_t most,
                              std::int64_t otherwise) const {
  if (!value.is_scalar()) return value.whole_number(least, most, otherwise);
  const std::string text = value.text();
  if (text.empty() || is_number(text)) return value.whole_number(least, most, otherwise);
  try {
    const std::int64_t result = Expression(text, values_, used_).value();
    if (result >= least && result <= most) return result;
    value.error(fmt::format("must be from {} to {}, '{}' is {}", least, most, text, result));
  } catch (const UnknownName& unknown) {
    value.unknown_word("size", unknown.name, names_in(values_));
  } catch (const std::invalid_argument& problem) {
    value.error(fmt::format("'{}': {}", text, problem.what()));
  }
  return otherwise;
}

void ModelSizes::report_unused(const YamlReader& map) const {
  if (!map) return;
  for (const auto& [name, value] : map.entries()) {
    if (!used_.contains(name)) value.error(fmt::format("no layer uses '{}', and the input neither", name));
  }
}

}  // namespace tandem
