#include "engine/sim/collectives/nccl/link_unit.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "engine/sim/collectives/nccl/constants.h"

namespace tandem::sim::nccl {

int capability_of(std::string_view architecture) {
  if (architecture.starts_with("gfx")) return 0;
  int capability = 0;
  if (!architecture.starts_with("sm_")) return 80;
  architecture.remove_prefix(3);
  std::from_chars(architecture.data(), architecture.data() + architecture.size(), capability);
  return capability > 0 ? capability : 80;
}

LinkUnit unit_of(std::string_view architecture, int capability) {
  if (capability == 0) {
    for (const auto& [name, unit] : kXgmiUnits) {
      if (architecture.starts_with(name)) return {unit.nccl_gbs, unit.wire_gbs, unit.nominal_gbs, kXgmiLinks};
    }
    capability = 80;
  }
  const auto* unit = std::find_if(kNvlinkUnits.begin(), kNvlinkUnits.end() - 1,
                                  [capability](const NvlinkUnit& one) { return capability >= one.capability; });
  return {unit->nccl_gbs, unit->wire_gbs, unit->nominal_gbs, unit->most};
}

NvlinkRate LinkUnit::rate_of(double gbs, double all_gbs) const {
  const bool is_nominal = all_gbs > 1.15 * most * nccl_gbs;
  const double by_nccl = gbs / nccl_gbs;
  const double by_wire = gbs / wire_gbs;
  double links = std::abs(by_wire - std::round(by_wire)) < std::abs(by_nccl - std::round(by_nccl)) ? by_wire : by_nccl;
  if (is_nominal) links = gbs / nominal_gbs;
  links = std::max(1.0, std::round(links));
  return {links * nccl_gbs, std::min(gbs, links * wire_gbs)};
}

}  // namespace tandem::sim::nccl
