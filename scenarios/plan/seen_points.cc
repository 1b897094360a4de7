#include "scenarios/plan/seen_points.h"

#include <algorithm>
#include <map>

#include "scenarios/plan/pass_fields.h"
#include "scenarios/plan/plan_lines.h"

namespace tandem {
namespace {

constexpr std::size_t kLeastOfGroup = 32, kGroupsOfProcess = 8, kGroupsOfRank = 2;

std::size_t count_of(const std::vector<PointGroup>& groups) {
  std::size_t count = 0;
  for (const PointGroup& group : groups) count += group.size();
  return count;
}

std::vector<PointGroup> divided(const std::vector<PointGroup>& groups, std::size_t parts) {
  const std::size_t most = std::max(kLeastOfGroup, count_of(groups) / parts);
  std::vector<PointGroup> smaller;
  for (const PointGroup& group : groups) {
    for (std::size_t first = 0; first < group.size(); first += most) {
      const auto begin = group.begin() + static_cast<std::ptrdiff_t>(first);
      smaller.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(std::min(most, group.size() - first)));
    }
  }
  return smaller;
}

}  // namespace

std::vector<PointGroup> groups_of(const SweepSpace& space, const std::vector<SweepSpace::Point>& points) {
  const std::vector<std::string> fields = space.fields();
  std::map<std::vector<std::uint32_t>, PointGroup> alike;
  for (std::size_t i = 0; i < points.size(); ++i) {
    std::vector<std::uint32_t> values;
    for (std::size_t field = 0; field < fields.size(); ++field) {
      if (decides_passes(fields[field], true)) values.push_back(points[i][field]);
    }
    alike[values].push_back(i);
  }
  std::vector<PointGroup> groups;
  for (auto& [values, places] : alike) groups.push_back(std::move(places));
  return groups;
}

std::vector<PointGroup> groups_of_rank(std::vector<PointGroup> groups, int rank, int ranks) {
  if (ranks == 1) return groups;
  groups = divided(groups, kGroupsOfRank * static_cast<std::size_t>(ranks));
  std::ranges::stable_sort(groups, std::greater<>(), &PointGroup::size);
  std::vector<std::size_t> loads(static_cast<std::size_t>(ranks), 0);
  std::vector<PointGroup> mine;
  for (PointGroup& group : groups) {
    const auto least = std::ranges::min_element(loads);
    *least += group.size();
    if (least - loads.begin() == rank) mine.push_back(std::move(group));
  }
  return mine;
}

std::vector<PointGroup> groups_for_processes(const std::vector<PointGroup>& groups, int processes) {
  return divided(groups, kGroupsOfProcess * static_cast<std::size_t>(processes));
}

std::string GroupViewer::text(int group) {
  std::string text;
  for (const std::size_t place : groups_[static_cast<std::size_t>(group)]) {
    const PointBounds::Seen seen = bounds_.see(points_[place]);
    KeptOfPlan kept{.point = seen.point, .planned = seen.planned, .files = files_[place]};
    kept.point.values = space_.values(points_[place]);
    text += line_of_plan(kept);
  }
  return text;
}

}  // namespace tandem
