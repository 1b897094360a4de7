// Philox 4x32-10: a function from a counter and a key to four random words (Salmon et al., "Parallel random numbers: as
// easy as 1, 2, 3", SC 2011). Neighbouring counters give independent words.
#pragma once

#include <array>
#include <cstdint>

namespace tandem {

using PhiloxWords = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

constexpr PhiloxWords philox(PhiloxWords counter, PhiloxKey key) {
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  constexpr int kRounds = 10;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t first = kMultiplier0 * counter[0], second = kMultiplier1 * counter[2];
    counter = {static_cast<std::uint32_t>(second >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(second),
               static_cast<std::uint32_t>(first >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(first)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

// counter + count, where the first word is the least one.
constexpr PhiloxWords advanced(PhiloxWords counter, std::uint64_t count) {
  std::uint64_t carry = 0;
  for (std::size_t i = 0; i < counter.size(); ++i) {
    const std::uint64_t part = i < 2 ? (count >> (32 * i)) & 0xFFFFFFFF : 0;
    carry += counter[i] + part;
    counter[i] = static_cast<std::uint32_t>(carry);
    carry >>= 32;
  }
  return counter;
}

// The number of words that a draw of this probability, from 0 to 1, comprises: those below it.
constexpr std::uint64_t word_bound(double probability) {
  const double bound = probability * 0x1p32;
  const auto whole = static_cast<std::uint64_t>(bound);
  return static_cast<double>(whole) < bound ? whole + 1 : whole;
}

}  // namespace tandem
