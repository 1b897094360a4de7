#include "scenarios/plan/seen_points.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "scenarios/plan/pass_fields.h"
#include "scenarios/sweep/results_file.h"

namespace tandem {
namespace {

constexpr std::size_t kLeastOfGroup = 32, kGroupsOfProcess = 8;

}  // namespace

std::vector<PointGroup> groups_of(const SweepSpace& space, const std::vector<SweepSpace::Point>& points,
                                  int processes) {
  const std::vector<std::string> fields = space.fields();
  std::map<std::vector<std::uint32_t>, PointGroup> alike;
  for (std::size_t i = 0; i < points.size(); ++i) {
    std::vector<std::uint32_t> values;
    for (std::size_t field = 0; field < fields.size(); ++field) {
      if (decides_passes(fields[field], true)) values.push_back(points[i][field]);
    }
    alike[values].push_back(i);
  }
  const std::size_t most =
      std::max(kLeastOfGroup, points.size() / (kGroupsOfProcess * static_cast<std::size_t>(processes)));
  std::vector<PointGroup> groups;
  for (const auto& [values, places] : alike) {
    for (std::size_t first = 0; first < places.size(); first += most) {
      const auto begin = places.begin() + static_cast<std::ptrdiff_t>(first);
      groups.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(std::min(most, places.size() - first)));
    }
  }
  return groups;
}

// A line for each point: four figures of PlannedPoint, then that of a results file.
std::string GroupViewer::text(int group) {
  std::string text;
  for (const std::size_t place : groups_[static_cast<std::size_t>(group)]) {
    const PointBounds::Seen seen = bounds_.see(points_[place]);
    const PlannedPoint& planned = seen.planned;
    text += fmt::format("{} {} {} {} {}", planned.least_step_s, planned.units, planned.price_per_s, planned.power_w,
                        line_of(seen.point, ""));
  }
  return text;
}

std::vector<SeenPoint> seen_from(const std::string& text, const PointGroup& group) {
  std::istringstream lines(text);
  std::vector<SeenPoint> points;
  for (const std::size_t place : group) {
    SeenPoint seen{.place = place};
    std::string line;
    PlannedPoint& planned = seen.planned;
    lines >> planned.least_step_s >> planned.units >> planned.price_per_s >> planned.power_w;
    std::getline(lines, line);
    seen.point = point_of_line(line, "what was seen", static_cast<int>(place)).point;
    points.push_back(std::move(seen));
  }
  return points;
}

}  // namespace tandem
