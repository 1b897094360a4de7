#include "scenarios/run/collective_limits.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "engine/collective.h"
#include "reports/timeline/collective_waits.h"
#include "scenarios/estimates/link_limits.h"

namespace tandem {
namespace {

// If workers represent others, only their own ranks have records; the others are on equal numbers of machines.
int machines_of(const CallRanks& call, const std::vector<int>& machine_of_worker) {
  std::set<int> machines;
  for (const Record* record : call.records) {
    machines.insert(machine_of_worker.at(static_cast<std::size_t>(record->worker)));
  }
  const auto count = static_cast<int>(machines.size()), records = static_cast<int>(call.records.size());
  return std::max(count, call.records.front()->ranks * count / records);
}

// Limits are computed for links between GPUs.
bool is_on_gpu(const Timeline& timeline, const Record& record) {
  const std::string& name = timeline.devices.at(static_cast<std::size_t>(record.device)).name;
  return name.find("/device:GPU:") != std::string::npos;
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
  const auto is_taken = [&](const Record& record) { return is_on_gpu(result.timeline, record); };
  for (const auto& [sequence, call] : calls_of(result.timeline, is_taken)) {
    const std::string& operation = call.records.front()->name;
    const auto kind = collective_of_record(operation);
    const int devices = call.records.front()->ranks;
    if (!kind || devices < 2) continue;
    const auto limit = limits.bus_bandwidth(*kind, devices, machines_of(call, result.machines));
    if (!limit) continue;
    CollectiveBound& bound = bounds[{operation, devices}];
    if (bound.bus_bandwidth >= limit->bytes_per_s) continue;
    bound = {
        .operation = operation, .devices = devices, .bus_bandwidth = limit->bytes_per_s, .limited_by = limit->links};
  }
  std::vector<CollectiveBound> list;
  for (auto& [key, bound] : bounds) list.push_back(std::move(bound));
  return list;
}

}  // namespace tandem
