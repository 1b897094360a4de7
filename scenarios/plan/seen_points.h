// Looks at the points of a space in child processes: PointBounds for groups of points whose passes are alike, so that
// each process simulates few of these.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "reports/plan/plan_table.h"
#include "scenarios/plan/point_bounds.h"
#include "scenarios/sweep/sweep_space.h"

namespace tandem {

using PointGroup = std::vector<std::size_t>;  // places

// Returns groups of all points, enough of them for so many processes.
std::vector<PointGroup> groups_of(const SweepSpace& space, const std::vector<SweepSpace::Point>& points, int processes);

struct SeenPoint {
  std::size_t place = 0;
  SweptPoint point{};  // without its values
  PlannedPoint planned{};
};

class GroupViewer {
 public:
  // All must outlive this.
  GroupViewer(const SweepSpace& space, const std::vector<SweepSpace::Point>& points,
              const std::vector<PointGroup>& groups, std::shared_ptr<const Topology> topology)
      : points_(points), groups_(groups), bounds_(space, std::move(topology)) {}

  // Looks at the points of a group, and returns what it saw as a text for seen_from().
  std::string text(int group);

 private:
  const std::vector<SweepSpace::Point>& points_;
  const std::vector<PointGroup>& groups_;
  PointBounds bounds_;
};

std::vector<SeenPoint> seen_from(const std::string& text, const PointGroup& group);

}  // namespace tandem
