#include "engine/sim/collectives/measured_times.h"

namespace tandem::sim {

MeasuredTimes::MeasuredTimes(std::span<const CollectiveSample> samples) {
  std::map<CollectiveKind, std::vector<CollectivePoint>> points;
  for (const CollectiveSample& sample : samples) {
    const auto kind = collective_of_record(sample.operation);
    if (!kind || sample.devices < 2 || sample.bytes <= 0) continue;  // nothing moves
    points[*kind].push_back(
        {.devices = sample.devices, .nodes = sample.nodes, .bytes = sample.bytes, .time_s = sample.time_s});
  }
  for (const auto& [kind, measured] : points) fits_.emplace(kind, CollectiveFit(kind, measured));
}

const CollectiveFit* MeasuredTimes::find(CollectiveKind kind) const {
  const auto found = fits_.find(kind);
  return found == fits_.end() ? nullptr : &found->second;
}

}  // namespace tandem::sim
