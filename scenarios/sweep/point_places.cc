#include "scenarios/sweep/point_places.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace tandem {
namespace {

std::string key_of_point(const SweepSpace::Values& values, const std::string& files) {
  std::vector<std::string> texts;
  for (const auto& [field, value] : values) texts.push_back(field + "=" + value);
  std::sort(texts.begin(), texts.end());
  return fmt::format("{}\n{}", files, fmt::join(texts, "\n"));
}

}  // namespace

PointPlaces::PointPlaces(const SweepSpace& space, const std::vector<SweepSpace::Point>& points) {
  for (std::size_t i = 0; i < points.size(); ++i) {
    files_.push_back(space.files_hash(points[i]));
    places_[key_of_point(space.values(points[i]), files_.back())] = i;
  }
}

std::optional<std::size_t> PointPlaces::find(const SweepSpace::Values& values, const std::string& files) const {
  const auto found = places_.find(key_of_point(values, files));
  return found == places_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace tandem
