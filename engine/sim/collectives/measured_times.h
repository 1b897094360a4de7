// The measured times of collectives in a topology, prepared for predictions at other sizes, devices and machines.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <vector>

#include "engine/collective_fit.h"
#include "engine/sim/base/notes.h"
#include "topologies/topology.h"

namespace tandem::sim {

class MeasuredTimes {
 public:
  explicit MeasuredTimes(std::span<const CollectiveSample> samples);

  bool empty() const { return points_.empty(); }
  // Empty where the collective was not measured.
  const std::vector<CollectivePoint>& points(CollectiveKind kind) const;
  // Predicts from the measured times alone; null where the collective was not measured.
  const CollectiveFit* fit(CollectiveKind kind) const;

 private:
  std::map<CollectiveKind, std::vector<CollectivePoint>> points_;
  std::map<CollectiveKind, CollectiveFit> fits_;
};

// Notes a time that is extrapolated. `time` is empty where the measured times say nothing about it.
void note_range(Notes& notes, CollectiveKind kind, const CollectivePoint& wanted,
                const std::optional<CollectiveFit::Prediction>& time);

}  // namespace tandem::sim
