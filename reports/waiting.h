// Who waits for whom: the collectives of a run divided into waiting for the last rank and transfer, and the way through
// a step on which nothing waited.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "engine/timeline.h"

namespace tandem {

enum class Pace : std::uint8_t;

// What a device spends in the collectives of a step: the mean over the measured steps.
struct RankWaiting {
  std::string device;        // its name
  int devices = 1;           // that it represents, itself included
  Nanoseconds waiting = 0;   // from its arrival to the last rank's
  Nanoseconds transfer = 0;  // from the last rank's arrival to its own end
  Nanoseconds caused = 0;    // mean waiting of the other ranks in the calls to which this one came last
  double comes_last = 0;     // share of its calls; of several that come last together, the first one counts
};

// The mean of a device over equal calls.
struct CallShare {
  int rank = 0;  // index into the ranks of the run
  Nanoseconds waiting = 0;
  Nanoseconds transfer = 0;

  bool operator==(const CallShare&) const = default;
};

// Equal calls: of the same operation, on as many devices, of as many bytes.
using CallKey = std::tuple<std::string, int, std::int64_t>;
CallKey key_of(const Record& record);

struct Waiting {
  std::vector<RankWaiting> ranks;                   // in the timeline's order; those without collectives are left out
  std::map<CallKey, std::vector<CallShare>> calls;  // by rank
};

// `steps` are the measured ones, in ascending order.
Waiting waiting_of(const Timeline& timeline, const std::vector<int>& steps);

// The rank for which others wait longest; null if nobody waits.
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

// Empty where no device has work in that step. There must be a step.
std::optional<CriticalPath> critical_path_of(const Timeline& timeline, const std::vector<int>& steps, Pace pace);

}  // namespace tandem
