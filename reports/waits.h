// Splits collectives into waiting for the last rank and transfer, rank by rank.
#pragma once

#include <cstdint>
#include <map>
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
  int delays = 0;                           // calls to which it came last, the first one of several that did
  Nanoseconds caused = 0;                   // the mean waiting of the other ranks in these, summed
  std::vector<Nanoseconds> waited_by_step;  // in the order of the steps that were asked for

  Nanoseconds waited() const;
};

// Returns those of every device that took part in a collective of one of the `steps`, which must ascend; by device.
std::vector<RankWaits> waits_of(const Timeline& timeline, const std::vector<int>& steps);

// How many workers each representative represents; empty where every worker has its own records.
std::map<int, int> workers_represented(const Timeline& timeline);

// The records of one call.
struct CallRanks {
  std::vector<const Record*> records;
  Nanoseconds last_arrival = 0;

  void add(const Record& record);
  // The rank that all others waited for; null if several arrived together.
  const Record* last() const;
};

// The calls of the `steps`, which must ascend, by their sequence number.
std::map<std::int64_t, CallRanks> calls_of(const Timeline& timeline, const std::vector<int>& steps);

}  // namespace tandem
