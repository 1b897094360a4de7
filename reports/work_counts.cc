#include "reports/work_counts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "reports/report_text.h"

namespace tandem {

namespace {

constexpr std::string_view kInTheRun = " in the run";

void add_memory(const Timeline& timeline, WorkCounts& counts) {
  for (const TimelineDevice& device : timeline.devices) {
    if (device.allocations == 0) continue;
    counts[fmt::format("tensors{}", kInTheRun)] += device.allocations;
    counts[fmt::format("bytes of tensors{}", kInTheRun)] += device.allocated_bytes;
    counts[fmt::format("peak bytes of {}{}", short_device_name(device.name), kInTheRun)] = device.memory_peak_bytes;
  }
}

}  // namespace

WorkCounts work_counts(const Timeline& timeline, int warmup_steps) {
  WorkCounts counts;
  std::set<std::pair<std::string, std::int64_t>> seen;  // calls of collectives, which have a record on each rank
  for (const Record& record : timeline.records) {
    if (record.step < warmup_steps || record.kind == RecordKind::step) continue;
    const std::int64_t bytes = std::llround(record.bytes);
    if (record.kind == RecordKind::op) {
      const std::string_view purpose = name_of(record.category);
      ++counts[fmt::format("ops of {}", purpose)];
      ++counts[fmt::format("op {}", record.name.text())];
      if (bytes > 0) counts[fmt::format("bytes of {}", purpose)] += bytes;
    } else if (record.kind == RecordKind::copy) {
      ++counts[fmt::format("copies of {} B", bytes)];
      counts["copied bytes"] += bytes;
    } else {
      std::string name = fmt::format("{} {} B x {}", record.name.text(), bytes, record.ranks);
      if (seen.emplace(name, record.sequence).second) counts[std::move(name)] += record.calls;
    }
  }
  add_memory(timeline, counts);
  return counts;
}

std::vector<CountChange> count_changes(const WorkCounts& now, const WorkCounts& before) {
  std::map<std::string, CountChange> all;
  for (const auto& [name, count] : before) all[name].before = count;
  for (const auto& [name, count] : now) all[name].now = count;
  std::vector<CountChange> changes;
  for (auto& [name, change] : all) {
    change.name = name;
    if (change.now != change.before) changes.push_back(std::move(change));
  }
  return changes;
}

bool is_less(const std::vector<CountChange>& changes) {
  return std::all_of(changes.begin(), changes.end(), [](const CountChange& one) { return one.now < one.before; });
}

std::string count_change_text(const CountChange& change, int measured_steps) {
  const bool is_per_step = measured_steps > 1 && !change.name.ends_with(kInTheRun) &&
                           change.before % measured_steps == 0 && change.now % measured_steps == 0;
  if (!is_per_step) return fmt::format("{}: {} -> {}", change.name, change.before, change.now);
  return fmt::format("{}: {} -> {} per step", change.name, change.before / measured_steps, change.now / measured_steps);
}

}  // namespace tandem
