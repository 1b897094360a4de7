#include "reports/collective_waits.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

namespace tandem {
namespace {

// Returns the place of `step` among the sorted `steps`.
std::optional<std::size_t> index_of(const std::vector<int>& steps, int step) {
  const auto found = std::lower_bound(steps.begin(), steps.end(), step);
  if (found == steps.end() || *found != step) return std::nullopt;
  return static_cast<std::size_t>(found - steps.begin());
}

// If a record represents those of other workers, these are ranks of the same call, and wait as well.
void add_delay(const CallRanks& ranks, const std::map<int, int>& represented, std::map<int, RankWaits>& devices) {
  const bool is_whole = static_cast<int>(ranks.records.size()) == ranks.records.front()->ranks;
  Nanoseconds waited = 0;
  for (const Record* record : ranks.records) {
    const auto one = represented.find(record->worker);
    waited += (ranks.last_arrival() - record->start_ns) * (is_whole || one == represented.end() ? 1 : one->second);
  }
  if (waited == 0) return;
  RankWaits& slowest = devices[ranks.last->device];
  slowest.caused += waited / (ranks.last->ranks - 1);
  ++slowest.last_arrivals;
}

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
  const std::map<int, int> represented = workers_represented(timeline);
  std::map<int, RankWaits> devices;
  for (const auto& [sequence, ranks] : calls_of(timeline, steps)) {
    add_delay(ranks, represented, devices);
    for (const Record* record : ranks.records) {
      RankWaits& waits = devices[record->device];
      waits.device = record->device;
      waits.waited_by_step.resize(steps.size());
      ++waits.calls;
      waits.transferred += std::max(Nanoseconds{0}, record->end_ns - ranks.last_arrival());
      waits.waited_by_step[*index_of(steps, record->step)] += ranks.last_arrival() - record->start_ns;
    }
  }
  std::vector<RankWaits> result;
  result.reserve(devices.size());
  for (auto& [device, waits] : devices) result.push_back(std::move(waits));
  return result;
}

}  // namespace tandem
