#include "engine/sim/base/seeded_schedule.h"

#include <limits>

namespace tandem::sim {

std::size_t SeededSchedule::choose(std::size_t count) {
  if (count <= 1) return 0;
  ++choices_;
  // Numbers from the last whole multiple of `count` on would favour the first items; they are drawn again.
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  const std::uint64_t end = kMost - kMost % count;
  std::uint64_t drawn = random_();
  while (drawn >= end) drawn = random_();
  return drawn % count;
}

}  // namespace tandem::sim
