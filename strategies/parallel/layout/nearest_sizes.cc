#include "strategies/parallel/layout/nearest_sizes.h"

#include <fmt/format.h>

#include <algorithm>

namespace tandem {
namespace {

// 0 for either: there is none.
std::string text_of(std::int64_t below, std::int64_t above) {
  if (below > 0 && above > 0) return fmt::format("{} or {} do", below, above);
  const std::int64_t one = std::max(below, above);
  return one == 1 ? "1 does" : fmt::format("{} do", one);
}

}  // namespace

std::string nearest_divisors(std::int64_t total, std::int64_t asked) {
  std::int64_t below = 0, above = 0;
  for (std::int64_t low = 1; low * low <= total; ++low) {
    if (total % low != 0) continue;
    for (const std::int64_t divisor : {low, total / low}) {
      if (divisor < asked) below = std::max(below, divisor);
      if (divisor > asked && (above == 0 || divisor < above)) above = divisor;
    }
  }
  return text_of(below, above);
}

std::string nearest_multiples(std::int64_t unit, std::int64_t asked) {
  const std::int64_t below = (asked - 1) / unit * unit;
  return text_of(below, (asked / unit + 1) * unit);
}

}  // namespace tandem
