#include "scenarios/plan/hand_changes.h"

#include "scenarios/scenario/shared_parts.h"
#include "topologies/base/strict_yaml.h"

namespace tandem {

std::string value_as_it_is(const SweepSpace& space, std::size_t field) {
  const YamlNode* node = node_at(space.base().document->root(), space.fields()[field]);
  return node != nullptr ? text_of(*node) : "-";
}

std::vector<ChangedFields> differences_of(const SweepSpace& space, const SweepSpace::Point& point) {
  const SweepSpace::Values values = space.values(point);
  std::vector<ChangedFields> differences;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i].second != value_as_it_is(space, i)) differences.push_back({i});
  }
  return differences;
}

}  // namespace tandem
