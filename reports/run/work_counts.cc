#include "reports/run/work_counts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "reports/run/report_text.h"

namespace tandem {

namespace {

constexpr std::string_view kInTheRun = " in the run", kOp = "op ", kPeak = "peak bytes of ";
constexpr double kNearPeak = 0.1;

bool names_ops(const std::string& name) {
  return name.starts_with(kOp);
}

bool is_of_memory(const std::string& name) {
  return name.ends_with(kInTheRun);
}

bool is_near_peak(const CountChange& change) {
  const auto difference = static_cast<double>(change.now - change.before);
  return change.name.starts_with(kPeak) && std::abs(difference) <= kNearPeak * static_cast<double>(change.before);
}

void add_memory(const Timeline& timeline, WorkCounts& counts) {
  for (const TimelineDevice& device : timeline.devices) {
    if (device.allocations == 0) continue;
    counts[fmt::format("tensors{}", kInTheRun)] += device.allocations;
    counts[fmt::format("bytes of tensors{}", kInTheRun)] += device.allocated_bytes;
    counts[fmt::format("{}{}{}", kPeak, short_device_name(device.name), kInTheRun)] = device.memory_peak_bytes;
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
      ++counts[fmt::format("{}{}", kOp, record.name.text())];
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
  const auto both_have = [&](bool (*is_of_kind)(const std::string&)) {
    const auto has = [&](const WorkCounts& counts) {
      return std::ranges::any_of(counts, [&](const auto& count) { return is_of_kind(count.first); });
    };
    return has(now) && has(before);
  };
  const bool compares_names = both_have(names_ops), compares_memory = both_have(is_of_memory);
  std::vector<CountChange> changes;
  for (auto& [name, change] : all) {
    change.name = name;
    const bool is_compared = (compares_names || !names_ops(name)) && (compares_memory || !is_of_memory(name));
    if (is_compared && change.now != change.before && !is_near_peak(change)) changes.push_back(std::move(change));
  }
  const bool is_other_work =
      std::ranges::any_of(changes, [](const CountChange& change) { return !names_ops(change.name); });
  return is_other_work ? changes : std::vector<CountChange>{};
}

bool is_less(const std::vector<CountChange>& changes) {
  return std::ranges::all_of(changes,
                             [](const CountChange& one) { return one.now < one.before || names_ops(one.name); });
}

std::string count_change_text(const CountChange& change, int measured_steps) {
  const bool is_per_step = measured_steps > 1 && !is_of_memory(change.name) && change.before % measured_steps == 0 &&
                           change.now % measured_steps == 0;
  if (!is_per_step) return fmt::format("{}: {} -> {}", change.name, change.before, change.now);
  return fmt::format("{}: {} -> {} per step", change.name, change.before / measured_steps, change.now / measured_steps);
}

}  // namespace tandem
