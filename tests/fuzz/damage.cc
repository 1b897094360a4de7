#include "tests/fuzz/damage.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace tandem::fuzz {
namespace {

constexpr std::array<std::string_view, 16> kOddValues{
    "-1",    "0",   "1e308", "1e-300", "99999999999999999999", "-0.5", "\"x\"", "null", "true", "[]", "{}", "[1]",
    "1e999", "nan", "",      "0x10"};

}  // namespace

std::string Damage::of(std::string text) {
  for (std::size_t count = 1 + below(3); count > 0 && !text.empty(); --count) change(text);
  return text;
}

void Damage::change(std::string& text) {
  const std::size_t at = below(text.size());
  const std::size_t length = std::min(text.size() - at, 1 + below(40));
  switch (below(8)) {
    case 0:
      text[at] = static_cast<char>(below(256));
      break;
    case 1:
      text.erase(at, length);
      break;
    case 2:
      text.insert(at, text.substr(below(text.size()), length));
      break;
    case 3:
      text.resize(at);
      break;
    case 4:
      text.insert(at, std::string(1 + below(300), "<{[\"0 "[below(6)]));
      break;
    case 5:
    case 6:
      change_number(text, at);
      break;
    default:
      change_line(text, at);
  }
}

// Puts something else in the place of the next number.
void Damage::change_number(std::string& text, std::size_t from) {
  constexpr std::string_view kDigits = "0123456789.-+";
  const std::size_t begin = text.find_first_of("0123456789", from);
  if (begin == std::string::npos) return;
  const std::size_t end = std::min(text.find_first_not_of(kDigits, begin), text.size());
  text.replace(begin, end - begin, kOddValues[below(kOddValues.size())]);
}

// Leaves a line out, or repeats it.
void Damage::change_line(std::string& text, std::size_t from) {
  const std::size_t begin = text.rfind('\n', from) + 1;  // 0 in the first line
  const std::size_t end = std::min(text.find('\n', from), text.size() - 1) + 1;
  if (begin >= end) return;
  const std::string line = text.substr(begin, end - begin);
  if (below(2) == 0) {
    text.erase(begin, line.size());
  } else {
    text.insert(begin, line);
  }
}

}  // namespace tandem::fuzz
