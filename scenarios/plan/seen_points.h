// Looks at the points of a space in child processes: PointBounds for groups of points whose passes are alike, so that
// each process simulates few of these, and each of several ranks others.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "scenarios/plan/point_bounds.h"
#include "scenarios/sweep/sweep_space.h"

namespace tandem {

using PointGroup = std::vector<std::size_t>;  // places

// Returns groups of all points; of those in different groups, passes differ.
std::vector<PointGroup> groups_of(const SweepSpace& space, const std::vector<SweepSpace::Point>& points);

// Returns the groups of a rank: equally many points for each rank, as far as groups are not divided. One is divided
// where that leaves some rank with little.
std::vector<PointGroup> groups_of_rank(std::vector<PointGroup> groups, int rank, int ranks);

// Divides groups, so that there are enough of them for so many processes.
std::vector<PointGroup> groups_for_processes(const std::vector<PointGroup>& groups, int processes);

class GroupViewer {
 public:
  // All must outlive this. `files` are hashes of the points' files.
  GroupViewer(const SweepSpace& space, const std::vector<SweepSpace::Point>& points,
              const std::vector<std::string>& files, const std::vector<PointGroup>& groups,
              std::shared_ptr<const Topology> topology)
      : space_(space), points_(points), files_(files), groups_(groups), bounds_(space, std::move(topology)) {}

  // Looks at the points of a group, and returns a line of a results file (plan_lines.h) for each.
  std::string text(int group);

 private:
  const SweepSpace& space_;
  const std::vector<SweepSpace::Point>& points_;
  const std::vector<std::string>& files_;
  const std::vector<PointGroup>& groups_;
  PointBounds bounds_;
};

}  // namespace tandem
