// Choices made from bytes: those that libFuzzer makes up, or those of a seed.
//
// Once the bytes are used up, every choice is the first one. So fewer bytes, and bytes of value 0, make a simpler input
// if the simplest choice comes first, and an input is shrunk by shrinking its bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>
#include <string_view>

namespace tandem::fuzz {

class Draws {
 public:
  explicit Draws(std::string_view bytes) : bytes_(bytes) {}

  // Returns 0, 1, ... or count - 1. `count` is at most 256.
  std::size_t index(std::size_t count) {
    if (bytes_.empty()) return 0;
    const auto byte = static_cast<unsigned char>(bytes_.front());
    bytes_.remove_prefix(1);
    return byte % count;
  }
  template <typename Choice>
  Choice of(std::initializer_list<Choice> choices) {
    return choices.begin()[index(choices.size())];
  }
  std::string word(std::initializer_list<const char*> choices) { return of(choices); }
  bool one_in(std::size_t count) { return index(count) == count - 1; }

 private:
  std::string_view bytes_;
};

// Returns bytes that are the same on every machine.
inline std::string bytes_of_seed(std::uint32_t seed, std::size_t count) {
  std::mt19937 random(seed);
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random() % 256);
  return bytes;
}

// Returns the simplest bytes found for which `fails` still holds, as it does for `bytes`: without pieces that are not
// needed, and with the least values.
template <typename Fails>
std::string shrunk(std::string bytes, Fails&& fails) {
  for (std::size_t piece = bytes.size(); piece > 0; piece /= 2) {
    for (std::size_t at = 0; at + piece <= bytes.size();) {
      std::string fewer = bytes;
      fewer.erase(at, piece);
      if (fails(fewer)) {
        bytes = fewer;
      } else {
        at += piece;
      }
    }
  }
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    for (const char less : {'\0', '\1', '\2', '\3'}) {
      std::string simpler = bytes;
      simpler[at] = less;
      if (bytes[at] == less) break;
      if (!fails(simpler)) continue;
      bytes = simpler;
      break;
    }
  }
  return bytes;
}

}  // namespace tandem::fuzz
