#include "reports/pages/assets.h"

#include <charconv>
#include <cstdint>
#include <vector>

#include "assets_data.h"

namespace tandem::pages {
namespace {

// Returns bytes, given as hexadecimal digits, in base 64.
std::string base64_of_hex(std::string_view hex) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  std::uint32_t bits = 0;
  int count = 0;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    std::uint32_t byte = 0;
    std::from_chars(hex.data() + i, hex.data() + i + 2, byte, 16);
    bits = bits << 8 | byte;
    for (count += 8; count >= 6; count -= 6) text += kDigits[bits >> (count - 6) & 63];
  }
  if (count > 0) text += kDigits[bits << (6 - count) & 63];
  while (text.size() % 4 != 0) text += '=';
  return text;
}

Asset asset(std::string_view text, std::string_view sha256) {
  return {.text = text, .sha256_base64 = base64_of_hex(sha256)};
}

}  // namespace

const Asset& style() {
  static const Asset kStyle = asset(kStyleText, kStyleHash);
  return kStyle;
}

std::span<const Asset> scripts() {
  static const std::vector<Asset> kScripts = [] {
    std::vector<Asset> all;
    if (has_zoom()) all.push_back(asset(kDygraphText, kDygraphHash));
    all.push_back(asset(kScriptText, kScriptHash));
    return all;
  }();
  return kScripts;
}

bool has_zoom() {
  return !kDygraphText.empty();
}

}  // namespace tandem::pages
