#include "reports/timeline/waiting.h"

#include <algorithm>
#include <cmath>

#include "reports/timeline/collective_waits.h"

namespace tandem {
namespace {

struct ShareSums {
  Nanoseconds waiting = 0, transfer = 0;
  std::int64_t calls = 0;
};

// `places` are the ranks of devices.
std::map<CallKey, std::vector<CallShare>> shares_of(const Timeline& timeline, const std::vector<int>& steps,
                                                    const std::map<int, int>& places) {
  std::map<CallKey, std::map<int, ShareSums>> sums;
  for (const auto& [sequence, call] : calls_of(timeline, steps)) {
    for (const Record* record : call.records) {
      ShareSums& mine = sums[key_of(*record)][record->device];
      mine.waiting += call.last_arrival() - record->start_ns;
      mine.transfer += std::max<Nanoseconds>(0, record->end_ns - call.last_arrival());
      ++mine.calls;
    }
  }
  std::map<CallKey, std::vector<CallShare>> shares;
  for (const auto& [key, by_device] : sums) {
    for (const auto& [device, mine] : by_device) {
      shares[key].push_back({places.at(device), mine.waiting / mine.calls, mine.transfer / mine.calls});
    }
  }
  return shares;
}

}  // namespace

CallKey key_of(const Record& record) {
  return {record.name, record.ranks, std::llround(record.bytes)};
}

Waiting waiting_of(const Timeline& timeline, const std::vector<int>& steps) {
  const std::map<int, int> represented = workers_represented(timeline);
  const auto count = std::max<Nanoseconds>(1, static_cast<Nanoseconds>(steps.size()));
  Waiting waiting;
  std::map<int, int> places;
  for (const RankWaits& one : waits_of(timeline, steps)) {
    const TimelineDevice& device = timeline.devices.at(static_cast<std::size_t>(one.device));
    const auto alike = represented.find(device.worker);
    places[one.device] = static_cast<int>(waiting.ranks.size());
    waiting.ranks.push_back({.device = device.name,
                             .devices = timeline.alike_devices * (alike == represented.end() ? 1 : alike->second),
                             .waiting = one.waited() / count,
                             .transfer = one.transferred / count,
                             .caused = one.caused / count,
                             .comes_last = one.calls > 0 ? static_cast<double>(one.last_arrivals) / one.calls : 0});
  }
  waiting.calls = shares_of(timeline, steps, places);
  return waiting;
}

const CallShare* awaited_rank(const std::vector<CallShare>& ranks) {
  const auto [least, most] = std::minmax_element(
      ranks.begin(), ranks.end(), [](const CallShare& a, const CallShare& b) { return a.waiting < b.waiting; });
  return least == ranks.end() || least->waiting == most->waiting ? nullptr : &*least;
}

const RankWaiting* slowest_rank(const std::vector<RankWaiting>& ranks) {
  const auto slowest = std::max_element(ranks.begin(), ranks.end(),
                                        [](const RankWaiting& a, const RankWaiting& b) { return a.caused < b.caused; });
  return slowest == ranks.end() || slowest->caused == 0 ? nullptr : &*slowest;
}

}  // namespace tandem
