// Finds who waits for whom: divides the collectives of a run into waiting for the last rank and transfer, and finds the
// way through a step on which nothing waited.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "engine/timeline.h"

namespace tandem {

enum class Pace : std::uint8_t;

// The time of a device in the collectives of a step, without transfers between two ranks: the mean over the measured
// steps. A moment at which several calls wait, or transfer, counts once.
struct RankWaiting {
  std::string device;        // its name
  int devices = 1;           // those that it represents, itself included
  Nanoseconds waiting = 0;   // from its arrival to the last rank's
  Nanoseconds transfer = 0;  // from the last rank's arrival to its own end
  Nanoseconds caused = 0;    // how long those that share calls with it wait for it; their mean
  double comes_last = 0;     // share of its calls; of several that come last together, the first one counts
};

// The means of a device over equal calls.
struct CallShare {
  int rank = 0;  // index into the ranks of the run
  Nanoseconds waiting = 0;
  Nanoseconds transfer = 0;

  bool operator==(const CallShare&) const = default;
};

// Equal calls have the same operation, number of devices, and bytes.
using CallKey = std::tuple<std::string, int, std::int64_t>;
CallKey key_of(const Record& record);

struct Waiting {
  std::vector<RankWaiting> ranks;                   // in the timeline's order; those without collectives are left out
  std::map<CallKey, std::vector<CallShare>> calls;  // by rank
};

// Returns the waiting in the measured `steps`, which must ascend.
Waiting waiting_of(const Timeline& timeline, const std::vector<int>& steps);

// Returns the rank for which the others wait, which is the one that waits least; null if the ranks are not known or
// wait equally long.
const CallShare* awaited_rank(const std::vector<CallShare>& ranks);

// Returns the rank for which others wait longest, or null if nobody waits.
const RankWaiting* slowest_rank(const std::vector<RankWaiting>& ranks);

// The critical path through a step (step_path.h). The parts add up to the step.
struct CriticalPath {
  int step = 0;  // the measured step of median length
  Nanoseconds compute = 0;
  Nanoseconds update = 0;
  Nanoseconds input = 0;
  Nanoseconds communication = 0;
  Nanoseconds other = 0;
  Nanoseconds idle = 0;                // nothing ran on the device
  std::string begins_on{}, ends_on{};  // names of devices

  bool operator==(const CriticalPath&) const = default;
};

// Returns the critical path through the step of median length among `steps`, which must not be empty; nothing where no
// device has work in that step.
std::optional<CriticalPath> critical_path_of(const Timeline& timeline, const std::vector<int>& steps, Pace pace);

}  // namespace tandem
