#include "reports/collective_waits.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

#include "engine/collective.h"

namespace tandem {
namespace {

// Returns the place of `step` among the sorted `steps`.
std::optional<std::size_t> index_of(const std::vector<int>& steps, int step) {
  const auto found = std::lower_bound(steps.begin(), steps.end(), step);
  if (found == steps.end() || *found != step) return std::nullopt;
  return static_cast<std::size_t>(found - steps.begin());
}

struct Span {
  Nanoseconds begin = 0, end = 0;
  std::size_t step = 0;     // its place among the steps
  int awaited_device = -1;  // of a wait
  bool is_group = false;    // of a wait: not in a transfer between two ranks
};

// Moments that several spans share count once, for the span that begins first.
class Union {
 public:
  // Returns how much of the span counts. Spans must be added in the order of their begins.
  Nanoseconds add(const Span& span) {
    const Nanoseconds counted = std::max(Nanoseconds{0}, span.end - std::max(span.begin, end_));
    end_ = std::max(end_, span.end);
    return counted;
  }

 private:
  Nanoseconds end_ = std::numeric_limits<Nanoseconds>::min();
};

// The calls of one device.
struct DeviceCalls {
  RankWaits waits;
  std::vector<Span> waiting, transfers;
  std::map<int, int> others;  // those that share calls in which it is awaited; how many devices each of them represents
};

void sort(std::vector<Span>& spans) {
  std::stable_sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
}

class DevicesCalls {
 public:
  DevicesCalls(const Timeline& timeline, const std::vector<int>& steps)
      : represented_(workers_represented(timeline)), steps_(steps) {
    for (const auto& [sequence, ranks] : calls_of(timeline, steps)) add(ranks);
  }

  std::vector<RankWaits> waits() {
    for (auto& [device, calls] : devices_) sum_up(device, calls);
    std::vector<RankWaits> result;
    result.reserve(devices_.size());
    for (auto& [device, calls] : devices_) {
      int others = 0;
      for (const auto& [other, devices] : calls.others) others += devices;
      if (others > 0) calls.waits.caused = caused_[device] / others;
      result.push_back(std::move(calls.waits));
    }
    return result;
  }

 private:
  void add(const CallRanks& ranks) {
    const Record* const awaited = ranks.awaited();
    const bool is_group = collective_of_record(ranks.last->name) != CollectiveKind::send_receive;
    for (const Record* record : ranks.records) {
      DeviceCalls& calls = devices_[record->device];
      const std::size_t step = *index_of(steps_, record->step);
      ++calls.waits.calls;
      if (record->end_ns > ranks.last_arrival())
        calls.transfers.push_back({ranks.last_arrival(), record->end_ns, step});
      if (record->start_ns < ranks.last_arrival()) {
        calls.waiting.push_back({record->start_ns, ranks.last_arrival(), step, ranks.last->device, is_group});
      }
    }
    if (awaited == nullptr) return;
    DeviceCalls& slowest = devices_[awaited->device];
    ++slowest.waits.last_arrivals;
    add_others(ranks, slowest);
  }

  // If a record represents those of other workers, these are ranks of the same call, and wait as well.
  void add_others(const CallRanks& ranks, DeviceCalls& slowest) {
    const bool is_whole = static_cast<int>(ranks.records.size()) == ranks.records.front()->ranks;
    for (const Record* record : ranks.records) {
      const auto one = represented_.find(record->worker);
      int devices = is_whole || one == represented_.end() ? 1 : one->second;
      if (record->device == ranks.last->device) --devices;
      if (devices == 0) continue;
      int& known = slowest.others[record->device];
      known = std::max(known, devices);
    }
  }

  void sum_up(int device, DeviceCalls& calls) {
    calls.waits.device = device;
    calls.waits.waited_by_step.resize(steps_.size());
    Union all, transfers, groups;
    std::map<int, Union> by_awaited;
    sort(calls.waiting);
    for (const Span& span : calls.waiting) {
      calls.waits.waited_by_step[span.step] += all.add(span);
      if (span.is_group) calls.waits.waited_in_groups += groups.add(span);
      const auto& others = devices_.at(span.awaited_device).others;
      if (const auto mine = others.find(device); mine != others.end()) {
        caused_[span.awaited_device] += by_awaited[span.awaited_device].add(span) * mine->second;
      }
    }
    sort(calls.transfers);
    for (const Span& span : calls.transfers) calls.waits.transferred += transfers.add(span);
  }

  std::map<int, int> represented_;
  const std::vector<int>& steps_;
  std::map<int, DeviceCalls> devices_;
  std::map<int, Nanoseconds> caused_;  // by the device that caused it
};

}  // namespace

std::map<int, int> workers_represented(const Timeline& timeline) {
  std::map<int, int> workers;
  for (const WorkerClass& one : timeline.classes) workers[one.representative] = one.workers;
  return workers;
}

void CallRanks::add(const Record& record) {
  if (last == nullptr || record.start_ns > last->start_ns) last = &record;
  records.push_back(&record);
}

const Record* CallRanks::awaited() const {
  const bool is_awaited = std::any_of(records.begin(), records.end(),
                                      [this](const Record* record) { return record->start_ns < last->start_ns; });
  return is_awaited ? last : nullptr;
}

std::map<std::int64_t, CallRanks> calls_of(const Timeline& timeline,
                                           const std::function<bool(const Record& collective)>& is_taken) {
  std::map<std::int64_t, CallRanks> calls;
  for (const Record& record : timeline.records) {
    if (record.kind == RecordKind::collective && is_taken(record)) calls[record.sequence].add(record);
  }
  return calls;
}

std::map<std::int64_t, CallRanks> calls_of(const Timeline& timeline, const std::vector<int>& steps) {
  return calls_of(timeline, [&steps](const Record& record) { return index_of(steps, record.step).has_value(); });
}

Nanoseconds RankWaits::waited() const {
  return std::accumulate(waited_by_step.begin(), waited_by_step.end(), Nanoseconds{0});
}

std::vector<RankWaits> waits_of(const Timeline& timeline, const std::vector<int>& steps) {
  return DevicesCalls(timeline, steps).waits();
}

}  // namespace tandem
