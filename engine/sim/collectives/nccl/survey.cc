#include "engine/sim/collectives/nccl/survey.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "engine/sim/collectives/nccl/constants.h"
#include "engine/sim/collectives/nccl/domain_map.h"
#include "engine/sim/collectives/nccl/link_unit.h"
#include "topologies/base/error.h"

namespace tandem::sim::nccl {
namespace {

constexpr double kGiga = 1e9;

double gbs_of(const LinkModel& model) {
  return model.bandwidth_bytes_per_s.value / kGiga;
}

// The survey of one group.
class GroupSurvey {
 public:
  GroupSurvey(const Topology& topology, DomainMap& map, std::span<const NodeIndex> gpus)
      : topology_(topology), map_(map), gpus_(gpus) {}

  Survey run() {
    group_by_domain();
    describe_device();
    Machine& machine = survey_.machine;
    machine.domains = static_cast<int>(survey_.domains.size());
    machine.gpus = static_cast<int>(survey_.domains.front().size());
    machine.total_gpus = static_cast<int>(gpus_.size());
    if (!describe_switch() && !describe_mesh()) describe_pcie();
    if (machine.domains > 1) describe_network();
    return std::move(survey_);
  }

 private:
  NodeIndex gpu(int position) const { return gpus_[static_cast<std::size_t>(position)]; }
  const std::vector<int>& first() const { return survey_.domains.front(); }

  void group_by_domain() {
    std::map<int, std::size_t> places;
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      const auto [place, is_new] = places.emplace(map_.domain_of(gpus_[i]), survey_.domains.size());
      if (is_new) survey_.domains.emplace_back();
      survey_.domains[place->second].push_back(static_cast<int>(i));
    }
    std::stable_sort(survey_.domains.begin(), survey_.domains.end(),
                     [](const auto& a, const auto& b) { return a.size() > b.size(); });
    for (const NodeIndex index : map_.nodes_of(map_.domain_of(gpu(first().front())))) {
      const Node& node = topology_.node(index);
      if (node.kind == NodeKind::gpu) domain_gpus_.push_back(index);
      if (node.kind == NodeKind::nic) domain_nics_.push_back(index);
      if (node.kind == NodeKind::cpu && node.device) {
        survey_.machine.has_amd_host |= node.device->name.starts_with("AMD");
      }
    }
  }

  void describe_device() {
    const DeviceModel& device = *topology_.device(gpu(first().front()));
    survey_.machine.capability = capability_of(device.architecture);
    survey_.machine.clock_ghz = device.boost_clock_hz.value / kGiga;
    unit_ = unit_of(device.architecture, survey_.machine.capability);
  }

  bool describe_switch() {
    Machine& machine = survey_.machine;
    double least = std::numeric_limits<double>::infinity();
    for (const int position : first()) {
      double gbs = 0;
      map_.neighbours.each(gpu(position), LinkKind::nvlink, [&](NodeIndex other, const LinkModel& model) {
        if (topology_.kind(other) == NodeKind::nvswitch) gbs += gbs_of(model);
      });
      least = std::min(least, gbs);
    }
    if (least <= 0) return false;
    const NvlinkRate rate = unit_.rate_of(least, least);
    machine.intra = Intra::nvswitch;
    machine.gpu_gbs = rate.nccl_gbs;
    machine.gpu_wire_gbs = rate.wire_gbs;
    return true;
  }

  bool describe_mesh() {
    std::vector<NodeIndex> order;
    for (const int position : first()) order.push_back(gpu(position));
    for (const NodeIndex node : domain_gpus_) {
      if (std::find(order.begin(), order.end(), node) == order.end()) order.push_back(node);
    }
    std::map<NodeIndex, std::size_t> places;
    for (std::size_t i = 0; i < order.size(); ++i) places[order[i]] = i;
    std::vector<double> gbs(order.size() * order.size(), 0);
    double most = 0;
    for (std::size_t i = 0; i < order.size(); ++i) {
      double all = 0;
      map_.neighbours.each(order[i], LinkKind::nvlink, [&](NodeIndex other, const LinkModel& model) {
        const auto place = places.find(other);
        if (place == places.end()) return;
        gbs[i * order.size() + place->second] += gbs_of(model);
        all += gbs_of(model);
      });
      most = std::max(most, all);
    }
    if (!is_connected(gbs, order.size())) return false;
    Machine& machine = survey_.machine;
    machine.intra = Intra::nvlink_mesh;
    double wire = 0;
    double nccl = 0;
    for (double& pair : gbs) {
      if (pair <= 0) continue;
      const NvlinkRate rate = unit_.rate_of(pair, most);
      wire += rate.wire_gbs;
      nccl += rate.nccl_gbs;
      pair = rate.nccl_gbs;
    }
    machine.mesh_gbs = std::move(gbs);
    machine.mesh_wire_factor = nccl > 0 ? wire / nccl : 1;
    return true;
  }

  // Whether the group's GPUs of the first domain reach each other over NVLink, the others' at most crossed.
  bool is_connected(const std::vector<double>& gbs, std::size_t size) const {
    const std::size_t members = first().size();
    if (members == 1) return false;
    for (std::size_t a = 0; a < members; ++a) {
      const std::size_t b = (a + 1) % members;
      bool reaches = gbs[a * size + b] > 0;
      for (std::size_t middle = 0; middle < size && !reaches; ++middle) {
        reaches = gbs[a * size + middle] > 0 && gbs[middle * size + b] > 0;
      }
      if (!reaches) return false;
    }
    return true;
  }

  // The slowest route of the ring through the first domain.
  void describe_pcie() {
    Machine& machine = survey_.machine;
    const std::size_t members = first().size();
    if (members == 1) {
      machine.intra = Intra::nvswitch;  // no one to reach
      return;
    }
    double gbs = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < members; ++i) {
      const auto route = map_.router.route(gpu(first()[i]), gpu(first()[(i + 1) % members]));
      gbs = std::min(gbs, route->bandwidth_bytes_per_s / kGiga);
    }
    machine.intra = topology_.p2p() ? Intra::pcie : Intra::staged;
    machine.gpu_gbs = gbs;
    machine.gpu_wire_gbs = topology_.p2p() ? kPcieShare * gbs : std::min(kStagedGbs, kPcieShare * gbs);
  }

  void describe_network() {
    Machine& machine = survey_.machine;
    for (const NodeIndex nic : domain_nics_) {
      double gbs = 0;
      map_.neighbours.each(nic, LinkKind::network, [&](NodeIndex, const LinkModel& model) {
        gbs = std::max(gbs, gbs_of(model));
        describe_transport(model);
      });
      if (gbs <= 0) continue;
      ++machine.nics;
      machine.nic_gbs = machine.nics == 1 ? gbs : std::min(machine.nic_gbs, gbs);
      machine.nics_are_near &= has_near_gpu(nic);
    }
    if (machine.nics > 0) return place_ports();
    // Machines without NICs in their description: one link, as wide as the route.
    const auto route = map_.router.route(gpu(first().front()), gpu(survey_.domains[1].front()));
    machine.nics = 1;
    machine.nic_gbs = route->bandwidth_bytes_per_s / kGiga;
    machine.nics_are_near = false;
    for (const Edge& hop : route->hops) {
      const LinkModel& model = topology_.link_model(hop.link);
      if (model.kind == LinkKind::network) describe_transport(model);
    }
  }

  void describe_transport(const LinkModel& model) {
    Machine& machine = survey_.machine;
    machine.hop_us = std::max(machine.hop_us, model.hop_latency_s.value * 1e6);
    const std::string& transport = model.transport;
    const bool needs_none = transport == "infiniband" || transport == "roce";
    survey_.hop_is_known &= needs_none || model.hop_latency_s.value > 0;
    if (transport == "socket") machine.lacks_ll128 = true;  // the host copies, whatever is between NIC and GPU
    if (transport == "efa") {
      machine.advertised_us = machine.capability < 80 ? kEfaUsOfP3 : kEfaUs;
      machine.lacks_ll128 |= machine.capability < 90;
    }
  }

  // Spreads the NICs of every domain over its GPUs as they are spread in the first one.
  void place_ports() {
    const std::vector<std::size_t> nearest = nearest_gpus();
    for (const std::vector<int>& gpus : survey_.domains) {
      std::vector<Port>& ports = survey_.ports.emplace_back();
      for (const NodeIndex node : map_.nodes_of(map_.domain_of(gpu(gpus.front())))) {
        if (!is_connected_nic(node)) continue;
        const std::size_t place = ports.size() < nearest.size() ? nearest[ports.size()] : ports.size();
        ports.push_back({node, gpus[place % gpus.size()]});
      }
      if (!ports.empty()) continue;
      survey_.ports.clear();
      return;
    }
  }

  // For each NIC of the first domain a GPU with the shortest way to it, each GPU as often as the others.
  std::vector<std::size_t> nearest_gpus() {
    std::vector<std::size_t> nearest;
    std::vector<int> uses(first().size(), 0);
    for (const NodeIndex nic : domain_nics_) {
      if (!is_connected_nic(nic)) continue;
      std::pair<std::size_t, int> best{std::numeric_limits<std::size_t>::max(), 0};
      std::size_t place = 0;
      for (std::size_t i = 0; i < first().size(); ++i) {
        const auto route = map_.router.route(gpu(first()[i]), nic);
        const std::pair<std::size_t, int> found{route->hops.size(), uses[i]};
        if (found >= best) continue;
        best = found;
        place = i;
      }
      ++uses[place];
      nearest.push_back(place);
      limit_by_pcie(*map_.router.route(gpu(first()[place]), nic));
    }
    return nearest;
  }

  // A NIC is no faster than the way to it.
  void limit_by_pcie(const Route& route) {
    const double gbs = route.bandwidth_bytes_per_s / kGiga / kCosts.nic_share;
    survey_.machine.nic_gbs = std::min(survey_.machine.nic_gbs, gbs);
  }

  bool is_connected_nic(NodeIndex node) const {
    bool is_connected = false;
    if (topology_.kind(node) != NodeKind::nic) return false;
    map_.neighbours.each(node, LinkKind::network, [&](NodeIndex, const LinkModel&) { is_connected = true; });
    return is_connected;
  }

  // Whether a NIC reaches a GPU through PCIe switches alone.
  bool has_near_gpu(NodeIndex nic) const {
    std::vector<NodeIndex> reached = {nic};
    for (std::size_t i = 0; i < reached.size(); ++i) {
      bool is_near = false;
      map_.neighbours.each(reached[i], LinkKind::pcie, [&](NodeIndex other, const LinkModel&) {
        const NodeKind kind = topology_.kind(other);
        is_near |= kind == NodeKind::gpu;
        const bool is_new = std::find(reached.begin(), reached.end(), other) == reached.end();
        if (kind == NodeKind::pcie_switch && is_new) reached.push_back(other);
      });
      if (is_near) return true;
    }
    return false;
  }

  const Topology& topology_;
  DomainMap& map_;
  std::span<const NodeIndex> gpus_;
  LinkUnit unit_{};
  std::vector<NodeIndex> domain_gpus_;  // of the first domain, all of its machines'
  std::vector<NodeIndex> domain_nics_;
  Survey survey_;
};

}  // namespace

Surveyor::Surveyor(const Topology& topology, Router& router)
    : topology_(topology), map_(std::make_unique<DomainMap>(topology, router)) {}

Surveyor::~Surveyor() = default;

Survey Surveyor::survey(std::span<const NodeIndex> gpus) const {
  TANDEM_CHECK(!gpus.empty(), "a survey of no GPU");
  return GroupSurvey(topology_, *map_, gpus).run();
}

}  // namespace tandem::sim::nccl
