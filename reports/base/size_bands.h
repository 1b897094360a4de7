// The bands of sizes by which errors of collectives are shown.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tandem {

struct SizeBand {
  std::string_view name;
  std::int64_t most_bytes;
};
inline constexpr std::array kSizeBands{SizeBand{"<= 32 KiB", 32 << 10}, SizeBand{".. 1 MiB", 1 << 20},
                                       SizeBand{".. 64 MiB", 64 << 20}, SizeBand{"> 64 MiB", std::int64_t{1} << 62}};

inline std::size_t size_band_of(std::int64_t bytes) {
  std::size_t band = 0;
  while (bytes > kSizeBands[band].most_bytes) ++band;
  return band;
}

}  // namespace tandem
