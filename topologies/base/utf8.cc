#include "topologies/base/utf8.h"

namespace tandem {

std::size_t utf8_size(std::string_view text) {
  const auto byte = [text](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto continues = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) {
      if ((byte(i) & 0xC0U) != 0x80) return false;
    }
    return true;
  };
  const unsigned first = byte(0), second = byte(1);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first < 0xE0 && continues(1, 2)) return 2;
  // Neither an overlong form nor one half of a surrogate pair of UTF-16.
  const bool is_three =
      first >= 0xE0 && first < 0xF0 && !(first == 0xE0 && second < 0xA0) && !(first == 0xED && second >= 0xA0);
  if (is_three && continues(1, 3)) return 3;
  const bool is_four =
      first >= 0xF0 && first < 0xF5 && !(first == 0xF0 && second < 0x90) && !(first == 0xF4 && second >= 0x90);
  return is_four && continues(1, 4) ? 4 : 0;
}

std::size_t first_not_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = utf8_size(text.substr(at));
    if (size == 0) return at;
    at += size;
  }
  return std::string_view::npos;
}

}  // namespace tandem
