#include "reports/work_counts.h"

#include <fmt/format.h>

#include <cmath>
#include <set>

namespace tandem {

WorkCounts work_counts(const Timeline& timeline, int warmup_steps) {
  WorkCounts counts;
  std::set<std::pair<std::string, std::int64_t>> seen;  // calls of collectives, which have a record on each rank
  for (const Record& record : timeline.records) {
    if (record.step < warmup_steps || record.kind == RecordKind::step) continue;
    const std::int64_t bytes = std::llround(record.bytes);
    if (record.kind == RecordKind::op) {
      const std::string_view purpose = name_of(record.category);
      ++counts[fmt::format("ops of {}", purpose)];
      if (bytes > 0) counts[fmt::format("bytes of {}", purpose)] += bytes;
    } else if (record.kind == RecordKind::copy) {
      ++counts[fmt::format("copies of {} B", bytes)];
      counts["copied bytes"] += bytes;
    } else {
      std::string name = fmt::format("{} {} B x {}", record.name.text(), bytes, record.ranks);
      if (seen.emplace(name, record.sequence).second) counts[std::move(name)] += record.calls;
    }
  }
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

std::string count_change_text(const CountChange& change, int measured_steps) {
  const bool is_per_step =
      measured_steps > 1 && change.before % measured_steps == 0 && change.now % measured_steps == 0;
  if (!is_per_step) return fmt::format("{}: {} -> {}", change.name, change.before, change.now);
  return fmt::format("{}: {} -> {} per step", change.name, change.before / measured_steps, change.now / measured_steps);
}

}  // namespace tandem
