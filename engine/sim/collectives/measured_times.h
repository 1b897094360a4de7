// The measured times of collectives that a topology holds, ready to be asked for other sizes.
#pragma once

#include <map>
#include <optional>
#include <span>

#include "engine/collective_fit.h"
#include "topologies/topology.h"

namespace tandem::sim {

class MeasuredTimes {
 public:
  explicit MeasuredTimes(std::span<const CollectiveSample> samples);

  bool empty() const { return fits_.empty(); }
  // Null where the collective was not measured at all.
  const CollectiveFit* find(CollectiveKind kind) const;

 private:
  std::map<CollectiveKind, CollectiveFit> fits_;
};

}  // namespace tandem::sim
