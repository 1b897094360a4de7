// Dividing a number of elements into parts.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tandem {

// The `count` elements that begin at `first`.
struct Range {
  std::int64_t first = 0, count = 0;
  bool operator==(const Range&) const = default;
};

// Returns part `part` of `total` elements that are divided into `parts` parts. Where the division leaves a remainder,
// the first parts have one element more.
inline Range part_of(std::int64_t total, int parts, int part) {
  const std::int64_t usual = total / parts, larger = total % parts;
  return {.first = part * usual + std::min<std::int64_t>(part, larger), .count = usual + (part < larger ? 1 : 0)};
}

}  // namespace tandem
