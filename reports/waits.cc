#include "reports/waits.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

namespace tandem {
namespace {

// The records of one call.
struct Ranks {
  std::vector<const Record*> records;
  Nanoseconds last_arrival = 0;

  void add(const Record& record) {
    last_arrival = records.empty() ? record.start_ns : std::max(last_arrival, record.start_ns);
    records.push_back(&record);
  }

  // The rank that all others waited for; none if several arrived together.
  const Record* last() const {
    const Record* last = nullptr;
    for (const Record* record : records) {
      if (record->start_ns != last_arrival) continue;
      if (last != nullptr) return nullptr;
      last = record;
    }
    return records.size() > 1 ? last : nullptr;
  }
};

// Returns the place of `step` among the sorted `steps`.
std::optional<std::size_t> index_of(const std::vector<int>& steps, int step) {
  const auto found = std::lower_bound(steps.begin(), steps.end(), step);
  if (found == steps.end() || *found != step) return std::nullopt;
  return static_cast<std::size_t>(found - steps.begin());
}

}  // namespace

Nanoseconds RankWaits::waited() const {
  return std::accumulate(waited_by_step.begin(), waited_by_step.end(), Nanoseconds{0});
}

std::vector<RankWaits> waits_of(const Timeline& timeline, const std::vector<int>& steps) {
  std::map<std::int64_t, Ranks> calls;
  for (const Record& record : timeline.records) {
    if (record.kind == RecordKind::collective && index_of(steps, record.step)) calls[record.sequence].add(record);
  }
  std::map<int, RankWaits> devices;
  for (const auto& [sequence, ranks] : calls) {
    const Record* last = ranks.last();
    for (const Record* record : ranks.records) {
      RankWaits& waits = devices[record->device];
      waits.device = record->device;
      waits.waited_by_step.resize(steps.size());
      ++waits.calls;
      waits.last_arrivals += record == last ? 1 : 0;
      waits.transferred += std::max(Nanoseconds{0}, record->end_ns - ranks.last_arrival);
      waits.waited_by_step[*index_of(steps, record->step)] += ranks.last_arrival - record->start_ns;
    }
  }
  std::vector<RankWaits> result;
  result.reserve(devices.size());
  for (auto& [device, waits] : devices) result.push_back(std::move(waits));
  return result;
}

}  // namespace tandem
