#include "engine/purpose.h"

#include <algorithm>

namespace tandem {
namespace {

constexpr std::size_t kShownAtMost = 160;

// The text around `difference`, from the start of the word before it.
std::string around(const std::string& text, std::size_t difference) {
  constexpr std::size_t kBefore = 40;
  if (text.size() <= kShownAtMost) return text;
  std::size_t begin = difference > kBefore ? difference - kBefore : 0;
  if (begin > 0) begin = std::min(text.find(' ', begin), difference - 1) + 1;
  const std::string shown = text.substr(std::min(begin, text.size()), kShownAtMost);
  return (begin > 0 ? "... " : "") + shown + (begin + shown.size() < text.size() ? " ..." : "");
}

}  // namespace

std::pair<std::string, std::string> shown_difference(const std::string& a, const std::string& b) {
  const auto difference =
      static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
  return {around(a, difference), around(b, difference)};
}

std::string shown_beginning(const std::string& text) {
  return around(text, 0);
}

}  // namespace tandem
