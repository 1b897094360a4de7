// The sizes nearest to one that is refused, as the end of its message: "4 or 6 do".
#pragma once

#include <cstdint>
#include <string>

namespace tandem {

// Names the divisors of `total` that are nearest to `asked`, below and above it: "4 or 6 do", "1 does". Both arguments
// must be at least 1.
std::string nearest_divisors(std::int64_t total, std::int64_t asked);

// Names the multiples of `unit` likewise: "8 or 16 do".
std::string nearest_multiples(std::int64_t unit, std::int64_t asked);

}  // namespace tandem
