#include "engine/sim/collectives/measured_times.h"

#include <fmt/format.h>

namespace tandem::sim {

MeasuredTimes::MeasuredTimes(std::span<const CollectiveSample> samples) {
  for (const CollectiveSample& sample : samples) {
    const auto kind = collective_of_record(sample.operation);
    if (!kind || sample.devices < 2 || sample.bytes <= 0) continue;  // nothing moves
    points_[*kind].push_back(
        {.devices = sample.devices, .nodes = sample.nodes, .bytes = sample.bytes, .time_s = sample.time_s});
  }
  for (const auto& [kind, measured] : points_) fits_.emplace(kind, CollectiveFit(kind, measured));
}

const std::vector<CollectivePoint>& MeasuredTimes::points(CollectiveKind kind) const {
  static const std::vector<CollectivePoint> none;
  const auto found = points_.find(kind);
  return found == points_.end() ? none : found->second;
}

const CollectiveFit* MeasuredTimes::fit(CollectiveKind kind) const {
  const auto found = fits_.find(kind);
  return found == fits_.end() ? nullptr : &found->second;
}

void note_range(Notes& notes, CollectiveKind kind, const CollectivePoint& wanted,
                const std::optional<CollectiveFit::Prediction>& time) {
  if (time && !time->is_extrapolated) return;
  std::string where = fmt::format("{} devices", wanted.devices);
  if (wanted.nodes > 1) where += fmt::format(" of {} nodes", wanted.nodes);
  if (!time) return notes.add(fmt::format("extrapolated: {} was not measured on {}", name_of(kind), where));
  const std::string how =
      time->basis == "beyond the measured sizes" ? " outside the measured sizes" : ", " + time->basis;
  notes.add(fmt::format("extrapolated: {} on {}{}", name_of(kind), where, how));
}

}  // namespace tandem::sim
