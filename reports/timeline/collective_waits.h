// Splits the time of each rank in collectives into waiting for the last rank and transfer.
//
// Transfers between two ranks (send and receive) do not count: they are no meeting of a group. A stage of a pipeline
// posts a receive as soon as it has nothing else to do, so the time until its input comes says nothing about the
// sender.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "engine/timeline.h"

namespace tandem {

// The time of one device in the collectives of some steps; zero for one that takes part in transfers alone. A rank
// waits from its own arrival to the last rank's; from then to its own end, data is transferred. A moment at which
// several calls of a device wait counts once, for the step of the call that began to wait first; so does one at which
// several transfer.
struct RankWaits {
  int device = 0;  // index into Timeline::devices
  int calls = 0;
  int last_arrivals = 0;                    // calls in which others waited for it (CallRanks::awaited)
  Nanoseconds transferred = 0;              // over all calls
  Nanoseconds caused = 0;                   // how long the devices that share calls with it waited for it; their mean
  std::vector<Nanoseconds> waited_by_step;  // in the order of the steps that were asked for

  Nanoseconds waited() const;
};

// Returns the waits of every device that took part in a collective or a transfer of one of the `steps`, which must
// ascend; by device.
std::vector<RankWaits> waits_of(const Timeline& timeline, const std::vector<int>& steps);

// Returns how many workers each representative represents; nothing where every worker has its own records.
std::map<int, int> workers_represented(const Timeline& timeline);

// The records of one call.
struct CallRanks {
  std::vector<const Record*> records;
  const Record* last = nullptr;  // the last to arrive; of several, the first one

  void add(const Record& record);
  Nanoseconds last_arrival() const { return last->start_ns; }
  // Returns `last` if any other rank waited for it, else null.
  const Record* awaited() const;
};

// Returns the calls of the collectives for which `is_taken` holds, by their sequence number.
std::map<std::int64_t, CallRanks> calls_of(const Timeline& timeline,
                                           const std::function<bool(const Record& collective)>& is_taken);
// Does the same for the collectives of the `steps`, which must ascend.
std::map<std::int64_t, CallRanks> calls_of(const Timeline& timeline, const std::vector<int>& steps);

}  // namespace tandem
