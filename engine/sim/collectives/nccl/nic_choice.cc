#include "engine/sim/collectives/nccl/nic_choice.h"

#include <algorithm>
#include <map>

namespace tandem::sim::nccl {

ChosenNics NicChoice::chosen(const std::vector<NodeIndex>& gpus, const std::vector<NodeIndex>& nics,
                             const std::vector<NodeIndex>& members) const {
  std::vector<NodeIndex> first, others;
  for (const NodeIndex gpu : members) {
    std::size_t taken = 0;
    double gbs = 0;
    for (const NodeIndex nic : by_distance(gpu, gpus, nics)) {
      const auto route = map_.router.route(gpu, nic);
      const double most = gbs_of(topology_.link_model(route->hops.front().link));
      const double reached = std::min(gbs_of_cable(nic), route->bandwidth_bytes_per_s / 1e9);
      if (taken > 0 && (gbs + 0.5 * gbs_of_cable(nic) > most || reached < 0.5 * gbs_of_cable(nic))) break;
      gbs += reached;
      (taken++ == 0 ? first : others).push_back(nic);
    }
  }
  if (members.size() > 1) {
    std::ranges::sort(first);
    std::ranges::sort(others);
  }
  ChosenNics chosen;
  const auto add = [&](NodeIndex nic) {
    if (std::ranges::find(chosen.nics, nic) == chosen.nics.end()) chosen.nics.push_back(nic);
  };
  std::ranges::for_each(first, add);
  chosen.first_choices = chosen.nics.size();
  std::ranges::for_each(others, add);
  return chosen;
}

// Returns the nearest NICs first. Several GPUs that are equally near to several NICs begin with different ones.
std::vector<NodeIndex> NicChoice::by_distance(NodeIndex from, const std::vector<NodeIndex>& gpus,
                                              const std::vector<NodeIndex>& nics) const {
  std::map<Distance, std::vector<NodeIndex>> near;
  for (const NodeIndex nic : nics) {
    const bool is_at_hand = topology_.worker(nic) == topology_.worker(from);
    if (is_at_hand && is_connected(nic)) near[distance(from, nic)].push_back(nic);
  }
  std::vector<NodeIndex> sorted;
  for (auto& [away, equal] : near) {
    std::ptrdiff_t before = 0;
    for (const NodeIndex other : gpus) {
      if (other == from) break;
      if (topology_.worker(other) == topology_.worker(from) && distance(other, equal.front()) == away) ++before;
    }
    std::rotate(equal.begin(), equal.begin() + before % std::ssize(equal), equal.end());
    sorted.insert(sorted.end(), equal.begin(), equal.end());
  }
  return sorted;
}

NicChoice::Distance NicChoice::distance(NodeIndex from, NodeIndex nic) const {
  Distance found{0, 0};
  NodeIndex at = from;
  for (const Edge& hop : map_.router.route(from, nic)->hops) {
    const Link link = topology_.link(hop.link);
    at = hop.forward ? link.to : link.from;
    if (topology_.link_model(hop.link).kind == LinkKind::cpu_interconnect) ++found.first;
    if (topology_.kind(at) == NodeKind::cpu) found.second = 1;
  }
  return found;
}

double NicChoice::gbs_of_cable(NodeIndex nic) const {
  double gbs = 0;
  map_.neighbours.each(nic, LinkKind::network,
                       [&](NodeIndex, const LinkModel& model) { gbs = std::max(gbs, gbs_of(model)); });
  return gbs;
}

bool NicChoice::is_connected(NodeIndex node) const {
  bool is_connected = false;
  if (topology_.kind(node) != NodeKind::nic) return false;
  map_.neighbours.each(node, LinkKind::network, [&](NodeIndex, const LinkModel&) { is_connected = true; });
  return is_connected;
}

// Returns what a NIC reaches through PCIe switches alone, itself included.
std::vector<NodeIndex> NicChoice::over_switches(NodeIndex nic) const {
  std::vector<NodeIndex> reached = {nic};
  for (std::size_t i = 0; i < reached.size(); ++i) {
    if (i > 0 && topology_.kind(reached[i]) != NodeKind::pcie_switch) continue;
    map_.neighbours.each(reached[i], LinkKind::pcie, [&](NodeIndex other, const LinkModel&) {
      if (std::ranges::find(reached, other) == reached.end()) reached.push_back(other);
    });
  }
  return reached;
}

bool NicChoice::has_near_gpu(NodeIndex nic) const {
  return std::ranges::any_of(over_switches(nic),
                             [this](NodeIndex node) { return topology_.kind(node) == NodeKind::gpu; });
}

bool NicChoice::has_gpu_over_c2c(NodeIndex nic) const {
  bool has_gpu = false;
  for (const NodeIndex node : over_switches(nic)) {
    map_.neighbours.each(node, LinkKind::c2c, [&](NodeIndex other, const LinkModel&) {
      has_gpu |= topology_.kind(node) == NodeKind::cpu && topology_.kind(other) == NodeKind::gpu;
    });
  }
  return has_gpu;
}

}  // namespace tandem::sim::nccl
