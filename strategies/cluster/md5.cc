#include "strategies/cluster/md5.h"

#include <bit>
#include <cmath>
#include <string>

namespace tandem {
namespace {

constexpr std::array<std::array<int, 4>, 4> kShifts = {
    {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}}};

// Step i adds the integer part of 2^32 |sin(i + 1)|.
std::array<std::uint32_t, 64> sines() {
  std::array<std::uint32_t, 64> table{};
  for (std::size_t i = 0; i < 64; ++i) {
    table[i] = static_cast<std::uint32_t>(std::floor(std::ldexp(std::fabs(std::sin(static_cast<double>(i + 1))), 32)));
  }
  return table;
}

using State = std::array<std::uint32_t, 4>;

// The input of step i: a function of three words of the state, and the index of a word of the block.
std::pair<std::uint32_t, std::size_t> mixed(std::size_t i, const State& s) {
  const auto [a, b, c, d] = s;
  switch (i / 16) {
    case 0:
      return {(b & c) | (~b & d), i};
    case 1:
      return {(d & b) | (~d & c), (5 * i + 1) % 16};
    case 2:
      return {b ^ c ^ d, (3 * i + 5) % 16};
    default:
      return {c ^ (b | ~d), (7 * i) % 16};
  }
}

void add_block(State& state, std::string_view block) {
  static const std::array<std::uint32_t, 64> table = sines();
  std::array<std::uint32_t, 16> words{};
  for (std::size_t i = 0; i < 64; ++i) {
    words[i / 4] |= static_cast<std::uint32_t>(static_cast<std::uint8_t>(block[i])) << (8 * (i % 4));
  }
  State s = state;
  for (std::size_t i = 0; i < 64; ++i) {
    const auto [function, word] = mixed(i, s);
    const std::uint32_t sum = s[0] + function + table[i] + words[word];
    s = {s[3], s[1] + std::rotl(sum, kShifts[i / 16][i % 4]), s[1], s[2]};
  }
  for (std::size_t i = 0; i < 4; ++i) state[i] += s[i];
}

}  // namespace

std::array<std::uint8_t, 16> md5(std::string_view text) {
  std::string padded(text);
  padded.push_back('\x80');
  padded.resize((padded.size() + 8 + 63) / 64 * 64 - 8, '\0');
  const std::uint64_t bits = 8 * static_cast<std::uint64_t>(text.size());
  for (int i = 0; i < 8; ++i) padded.push_back(static_cast<char>(bits >> (8 * i)));

  State state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  for (std::size_t at = 0; at < padded.size(); at += 64) add_block(state, std::string_view(padded).substr(at, 64));
  std::array<std::uint8_t, 16> digest{};
  for (std::size_t i = 0; i < 16; ++i) digest[i] = static_cast<std::uint8_t>(state[i / 4] >> (8 * (i % 4)));
  return digest;
}

}  // namespace tandem
