#include "reports/timeline/collective_waits.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "engine/collective.h"
#include "reports/base/intervals.h"

namespace tandem {
namespace {

// Returns the place of `step` among the sorted `steps`.
std::optional<std::size_t> index_of(const std::vector<int>& steps, int step) {
  const auto found = std::lower_bound(steps.begin(), steps.end(), step);
  if (found == steps.end() || *found != step) return std::nullopt;
  return static_cast<std::size_t>(found - steps.begin());
}

struct StepWait {
  Interval time;
  std::size_t step = 0;  // its place among the steps
};

// The calls of one device.
struct DeviceCalls {
  RankWaits waits;
  std::vector<StepWait> waiting;
  std::vector<Interval> transfers;
  std::map<int, std::vector<Interval>> waiting_for;  // by the device that comes last
  std::map<int, int> others;  // those that share calls in which it is awaited; how many devices each of them represents
};

// Moments that several waits share count once, for the one that begins first.
std::vector<Nanoseconds> waited_by_step(std::vector<StepWait> waiting, std::size_t steps) {
  std::vector<Nanoseconds> waited(steps);
  std::stable_sort(waiting.begin(), waiting.end(),
                   [](const StepWait& a, const StepWait& b) { return a.time.start < b.time.start; });
  Nanoseconds counted_to = std::numeric_limits<Nanoseconds>::min();
  for (const auto& [time, step] : waiting) {
    waited[step] += std::max(Nanoseconds{0}, time.end - std::max(time.start, counted_to));
    counted_to = std::max(counted_to, time.end);
  }
  return waited;
}

class DevicesCalls {
 public:
  DevicesCalls(const Timeline& timeline, const std::vector<int>& steps)
      : represented_(workers_represented(timeline)), alike_devices_(timeline.alike_devices), steps_(steps) {
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
      if (!is_group) continue;
      ++calls.waits.calls;
      calls.transfers.push_back({ranks.last_arrival(), record->end_ns});
      const Interval wait{record->start_ns, ranks.last_arrival()};
      calls.waiting.push_back({wait, *index_of(steps_, record->step)});
      calls.waiting_for[ranks.last->device].push_back(wait);
    }
    if (awaited == nullptr || !is_group) return;
    DeviceCalls& slowest = devices_[awaited->device];
    ++slowest.waits.last_arrivals;
    add_others(ranks, slowest);
  }

  // If a record represents those of other workers or devices, these may be ranks of the same call, and wait as well.
  void add_others(const CallRanks& ranks, DeviceCalls& slowest) {
    const auto workers_of = [this](const Record* record) {
      const auto one = represented_.find(record->worker);
      return one == represented_.end() ? 1 : one->second;
    };
    const int all = ranks.records.front()->ranks;
    const int records = static_cast<int>(ranks.records.size());
    int with_workers = 0;
    for (const Record* record : ranks.records) with_workers += workers_of(record);
    const bool has_workers = records != all && records * alike_devices_ != all;
    const bool has_devices = records != all && (has_workers ? with_workers : records) != all;
    for (const Record* record : ranks.records) {
      int devices = (has_workers ? workers_of(record) : 1) * (has_devices ? alike_devices_ : 1);
      if (record->device == ranks.last->device) --devices;
      if (devices == 0) continue;
      int& known = slowest.others[record->device];
      known = std::max(known, devices);
    }
  }

  void sum_up(int device, DeviceCalls& calls) {
    calls.waits.device = device;
    calls.waits.waited_by_step = waited_by_step(std::move(calls.waiting), steps_.size());
    calls.waits.transferred = length_of(union_of(std::move(calls.transfers)));
    for (auto& [awaited, waits] : calls.waiting_for) {
      const auto& others = devices_.at(awaited).others;
      const auto mine = others.find(device);
      if (mine != others.end()) caused_[awaited] += length_of(union_of(std::move(waits))) * mine->second;
    }
  }

  std::map<int, int> represented_;
  int alike_devices_;
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
