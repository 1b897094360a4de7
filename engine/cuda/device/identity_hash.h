// A hash of 128 bits over a sequence of words: wide enough that two different series of launches never collide in
// practice.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tandem::cuda {

class IdentityHash {
 public:
  void add(std::uint64_t word) {
    // Two accumulators of multiply and rotate: each word changes both, and each accumulator changes the other.
    first_ = std::rotl((first_ ^ word) * 0x9e3779b97f4a7c15ULL, 29) + second_;
    second_ = std::rotl((second_ ^ std::rotl(word, 32)) * 0xc2b2ae3d27d4eb4fULL, 31) ^ first_;
  }
  template <typename Number>
  void add_number(Number number) {
    static_assert(sizeof number <= sizeof(std::uint64_t));
    std::uint64_t word = 0;
    std::memcpy(&word, &number, sizeof number);
    add(word);
  }
  bool operator==(const IdentityHash&) const = default;

  struct Of {
    std::size_t operator()(const IdentityHash& hash) const { return hash.first_ ^ hash.second_; }
  };

 private:
  std::uint64_t first_ = 0x243f6a8885a308d3ULL, second_ = 0x13198a2e03707344ULL;
};

}  // namespace tandem::cuda
