// Random words by their number, so that devices can draw parts of a sequence.
#pragma once

#include "engine/base/philox.h"

namespace tandem {

inline std::uint32_t drawn_word(std::uint64_t seed, std::uint64_t number) {
  return philox(advanced({}, number), {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)})[0];
}

}  // namespace tandem
