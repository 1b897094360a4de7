#include "scenarios/collective_limits.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "engine/collective.h"
#include "scenarios/calibration/link_limits.h"

namespace tandem {
namespace {

// The ranks of one call that have records.
struct RecordedCall {
  const Record* first = nullptr;
  int ranks = 0;
  std::set<int> machines;
};

// Where workers represent others, only their ranks have records: the others are on as many machines each.
int machines_of(const RecordedCall& call) {
  const auto machines = static_cast<int>(call.machines.size());
  return std::max(machines, call.first->ranks * machines / std::max(1, call.ranks));
}

// The links of a topology are counted between its GPUs.
bool is_on_gpu(const Timeline& timeline, const Record& record) {
  const std::string& name = timeline.devices.at(static_cast<std::size_t>(record.device)).name;
  return name.find("/device:GPU:") != std::string::npos;
}

std::map<std::int64_t, RecordedCall> recorded_calls(const RunResult& result) {
  std::map<std::int64_t, RecordedCall> calls;
  for (const Record& record : result.timeline.records) {
    if (record.kind != RecordKind::collective || !is_on_gpu(result.timeline, record)) continue;
    RecordedCall& call = calls[record.sequence];
    if (call.first == nullptr) call.first = &record;
    ++call.ranks;
    call.machines.insert(result.machines.at(static_cast<std::size_t>(record.worker)));
  }
  return calls;
}

}  // namespace

std::vector<CalibratedRange> calibrated_ranges(const std::vector<CollectiveSample>& samples) {
  std::map<std::tuple<std::string, int, int>, CalibratedRange> ranges;
  for (const CollectiveSample& sample : samples) {
    const std::int64_t bytes = std::llround(sample.bytes);
    const Nanoseconds time = std::llround(sample.time_s * 1e9);
    const auto [known, is_new] = ranges.try_emplace({sample.operation, sample.devices, sample.nodes});
    CalibratedRange& range = known->second;
    if (is_new) {
      range = {.operation = sample.operation,
               .devices = sample.devices,
               .nodes = sample.nodes,
               .from_bytes = bytes,
               .to_bytes = bytes,
               .from = time,
               .to = time};
    }
    range.from_bytes = std::min(range.from_bytes, bytes);
    range.to_bytes = std::max(range.to_bytes, bytes);
    range.from = std::min(range.from, time);
    range.to = std::max(range.to, time);
  }
  std::vector<CalibratedRange> list;
  for (auto& [key, range] : ranges) list.push_back(std::move(range));
  return list;
}

std::vector<CollectiveBound> collective_bounds(const RunResult& result) {
  if (!result.topology) return {};
  const calibration::LinkLimits limits(*result.topology);
  std::map<std::pair<std::string, int>, CollectiveBound> bounds;
  for (const auto& [sequence, call] : recorded_calls(result)) {
    const auto kind = collective_of_record(call.first->name);
    const int devices = call.first->ranks;
    if (!kind || devices < 2) continue;
    const auto limit = limits.bus_bandwidth(*kind, devices, machines_of(call));
    if (!limit) continue;
    CollectiveBound& bound = bounds[{call.first->name, devices}];
    if (bound.bus_bandwidth >= limit->bytes_per_s) continue;
    bound = {.operation = call.first->name,
             .devices = devices,
             .bus_bandwidth = limit->bytes_per_s,
             .limited_by = limit->links};
  }
  std::vector<CollectiveBound> list;
  for (auto& [key, bound] : bounds) list.push_back(std::move(bound));
  return list;
}

}  // namespace tandem
