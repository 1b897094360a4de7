// Splits collectives into waiting for the last rank and transfer, rank by rank.
#pragma once

#include <vector>

#include "engine/timeline.h"

namespace tandem {

// What the collectives of some steps cost one device. A rank waits from its arrival to the last rank's; from then on
// to its own end data is transferred.
struct RankWaits {
  int device = 0;  // index into Timeline::devices
  int calls = 0;
  int last_arrivals = 0;                    // calls for which every other rank had to wait
  Nanoseconds transferred = 0;              // over all calls
  std::vector<Nanoseconds> waited_by_step;  // in the order of the steps that were asked for

  Nanoseconds waited() const;
};

// Returns those of every device that took part in a collective of one of the `steps`, which must ascend; by device.
std::vector<RankWaits> waits_of(const Timeline& timeline, const std::vector<int>& steps);

}  // namespace tandem
