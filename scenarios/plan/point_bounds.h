// What can be told of the points of a space before any is simulated: whether they can run, whether they fit into
// memory, and a time that they do not go below.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "reports/plan/plan_table.h"
#include "scenarios/plan/lone_passes.h"
#include "scenarios/plan/replica_exchange.h"
#include "scenarios/sweep/sweep_space.h"

namespace tandem {

class PointBounds {
 public:
  // `space` must outlive this. `topology` is for scenarios that name none.
  PointBounds(const SweepSpace& space, std::shared_ptr<const Topology> topology)
      : space_(space), topology_(std::move(topology)), parts_(space.parts()) {}

  struct Seen {
    SweptPoint point{};  // without its values; PointState::not_run where it can run
    PlannedPoint planned{};
  };
  Seen see(const SweepSpace::Point& point);

 private:
  double least_step_s(const Job& job, const SweepSpace::Point& point);
  std::string key_of(const Job& job, const SweepSpace::Point& point) const;

  const SweepSpace& space_;
  std::shared_ptr<const Topology> topology_;
  SharedParts parts_;
  std::map<std::shared_ptr<const Topology>, LinkRates> rates_;
  std::map<std::string, std::optional<LoneWork>> work_;  // by what they depend on
  std::map<std::shared_ptr<const std::vector<RankTrace>>, double> of_traces_;
};

}  // namespace tandem
